# rockmate._runtime: executor, profiler and allocation meter, the only module that links torch. Include and library paths come
# from torch.utils.cpp_extension: torch's own CMake package wants a CUDA toolkit where torch was built with CUDA.
rockmate_ask_python(ROCKMATE_TORCH_INCLUDES "from torch.utils import cpp_extension as c; print(';'.join(c.include_paths()))"
  "torch is not in ${Python_EXECUTABLE}'s environment: pip install torch==2.13.0 (make setup does it)")
rockmate_ask_python(ROCKMATE_TORCH_LIBDIR "from torch.utils import cpp_extension as c; print(c.library_paths()[0])"
  "torch's libraries are not where torch.utils.cpp_extension says")
rockmate_ask_python(ROCKMATE_TORCH_CXX11_ABI "import torch; print(int(torch.compiled_with_cxx11_abi()))"
  "torch does not tell which C++ ABI it was built for")

file(GLOB RUNTIME_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/rockmate/runtime/*.cc)
Python_add_library(_runtime MODULE WITH_SOABI ${RUNTIME_SOURCES} bind_runtime.cc)
target_include_directories(_runtime PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(_runtime SYSTEM BEFORE PRIVATE ${ROCKMATE_TORCH_INCLUDES})  # its pybind11 too, not ours
target_compile_definitions(_runtime PRIVATE _GLIBCXX_USE_CXX11_ABI=${ROCKMATE_TORCH_CXX11_ABI} TORCH_EXTENSION_NAME=_runtime)
target_compile_options(_runtime PRIVATE -Wall -Wextra -fvisibility=hidden)
target_link_directories(_runtime PRIVATE ${ROCKMATE_TORCH_LIBDIR})
target_link_libraries(_runtime PRIVATE c10 torch torch_cpu torch_python)
set_target_properties(_runtime PROPERTIES INSTALL_RPATH "$ORIGIN/../torch/lib")
install(TARGETS _runtime LIBRARY DESTINATION rockmate)

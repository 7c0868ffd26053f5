# Everything that the build takes from elsewhere. Header-only libraries come from the system where it has them and are
# fetched at a pinned release where it has not; HiGHS and pybind11 come from the Python environment.
include(FetchContent)
find_package(Threads REQUIRED)

# Static libraries and headers only: nothing of a fetched project is installed with ours.
function(rockmate_dependency name url)
  FetchContent_Declare(${name} URL ${url} DOWNLOAD_EXTRACT_TIMESTAMP ON EXCLUDE_FROM_ALL SYSTEM FIND_PACKAGE_ARGS ${ARGN})
  FetchContent_MakeAvailable(${name})
endfunction()

rockmate_dependency(nlohmann_json https://github.com/nlohmann/json/releases/download/v3.12.0/json.tar.xz 3.10 CONFIG)
if(ROCKMATE_CLI)
  rockmate_dependency(CLI11 https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.5.0.tar.gz 2.1 CONFIG)
endif()
if(ROCKMATE_TESTS)
  rockmate_dependency(doctest https://github.com/doctest/doctest/archive/refs/tags/v2.4.12.tar.gz 2.4 CONFIG)
endif()

# The interpreter of the environment that the build is for: the active one, or .venv when none is active.
if(NOT Python_EXECUTABLE)
  if(DEFINED ENV{VIRTUAL_ENV})
    set(Python_EXECUTABLE $ENV{VIRTUAL_ENV}/bin/python)
  elseif(EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
    set(Python_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  endif()
endif()
if(ROCKMATE_PYTHON OR ROCKMATE_RUNTIME)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
else()
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
endif()

# Sets `out` to what the Python expression prints; stops with `advice` when it fails.
function(rockmate_ask_python out expression advice)
  execute_process(COMMAND ${Python_EXECUTABLE} -c "${expression}" OUTPUT_VARIABLE answer ERROR_VARIABLE trouble
                  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "${advice}\n${trouble}")
  endif()
  set(${out} ${answer} PARENT_SCOPE)
endfunction()

# HiGHS: headers and library of the PyPI package highsbox. Only its C API: the library has the old C++ ABI.
rockmate_ask_python(HIGHS_DIST
  "import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec('highsbox').origin).parent / 'highs_dist')"
  "highsbox is not in ${Python_EXECUTABLE}'s environment: pip install 'highsbox>=1.15,<1.16' (make setup does it)")
add_library(highs::highs SHARED IMPORTED GLOBAL)
set_target_properties(highs::highs PROPERTIES
  IMPORTED_LOCATION ${HIGHS_DIST}/lib/libhighs.so
  INTERFACE_INCLUDE_DIRECTORIES "${HIGHS_DIST}/include;${HIGHS_DIST}/include/highs")

# Where libhighs.so lies, seen from an installed Python module (site-packages/rockmate) and from the installed command (bin).
set(HIGHS_RPATH_FROM_MODULE "$ORIGIN/../highsbox/highs_dist/lib")
rockmate_ask_python(SITE_PACKAGES_FROM_BIN
  "import os, sysconfig as s; print(os.path.relpath(s.get_path('purelib'), s.get_path('scripts')))"
  "${Python_EXECUTABLE} does not run")
set(HIGHS_RPATH_FROM_BIN "$ORIGIN/${SITE_PACKAGES_FROM_BIN}/highsbox/highs_dist/lib")

// The rockmate command as its users meet it: output, exit status, files.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "rockmate/graph/file.h"
#include "rockmate/graph/json.h"
#include "rockmate/schedule/json.h"
#include "tests/planner/model_graphs.h"

using namespace rockmate;

namespace {

struct Outcome {
  int status = -1;
  std::string output;  // standard output and error
};

Outcome rockmate_command(const std::string& arguments) {
  Outcome outcome;
  FILE* pipe = popen((std::string(ROCKMATE_COMMAND) + " " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer;
  while (std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

// Removed with all that is in it.
struct Folder {
  Folder() {
    char name[] = "/tmp/rockmate_cli_XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name) const { return path + "/" + name; }
  std::string path;
};

const std::string kChain = std::string(ROCKMATE_SOURCE_DIR) + "/tests/graphs/chain4.json";

}  // namespace

TEST_CASE("help and version are no errors") {
  CHECK(rockmate_command("--help").status == 0);
  CHECK(rockmate_command("--version").output.starts_with("rockmate 0."));
  for (const char* command : {"", "plan", "compare", "curve", "simulate", "show", "report", "import"}) {
    const Outcome outcome = rockmate_command(std::string(command) + " --help");
    CHECK(outcome.status == 0);
    for (const char* part : {"Usage: rockmate", "Examples:", "Exit status: 0 done; 1"}) {
      CHECK(outcome.output.find(part) != std::string::npos);
    }
  }
}

TEST_CASE("what is wrong with a command or a file is told by its name") {
  const Folder folder;
  const std::string bad = folder.file("bad.json");
  write_file(bad, "no JSON");
  for (const auto& [arguments, part] : {
           std::pair<std::string, std::string>{"", "[rockmate] no command is given; choose one of plan, "},
           {"plann " + kChain, "[rockmate] 'plann' is no command; choose one of plan, "},
           {"plan " + bad + " -b 50%", "(in '" + bad + "')"},
           {"simulate " + kChain + " " + bad, "(in '" + bad + "')"},
           {"show " + bad, "(in '" + bad + "')"},
           {"plan " + kChain + " -b 404 --time-limit -1", "--time-limit"},
       }) {
    CAPTURE(arguments);
    const Outcome outcome = rockmate_command(arguments);
    CHECK(outcome.status == 2);
    CHECK(outcome.output.find(part) != std::string::npos);
  }
}

TEST_CASE("a plan within the budget is written, simulated and shown") {
  const Folder folder;
  const std::string schedule = folder.file("schedule.json");
  // Store-all peaks at 504 bytes; with two ops recomputed 404 do (tests/schedule/graph_files_test.cc).
  const Outcome planned = rockmate_command("plan " + kChain + " --budget 404 --json -o " + schedule);
  REQUIRE(planned.status == 0);
  const auto figures = nlohmann::json::parse(planned.output);
  CHECK(figures["store_all_peak_bytes"] == 504);
  CHECK(figures["peak_bytes"] <= 404);

  const Outcome simulated = rockmate_command("simulate " + kChain + " " + schedule + " --json --trace");
  REQUIRE(simulated.status == 0);
  const auto simulation = nlohmann::json::parse(simulated.output);
  CHECK(simulation["peak_bytes"] == figures["peak_bytes"]);
  CHECK(simulation["overhead"] == figures["overhead"]);
  CHECK(simulation["bytes_after"].back() == 4);  // the loss

  CHECK(rockmate_command("show " + schedule).output.starts_with("schedule "));
  CHECK(rockmate_command("show " + kChain).output.starts_with("graph       chain4, on cpu"));
  const std::string page = folder.file("page.html");
  CHECK(rockmate_command("report " + kChain + " " + schedule + " -o " + page).status == 0);
  CHECK(read_file(page).starts_with("<!doctype html>"));
  CHECK(rockmate_command("report " + kChain + " --budget 0.9 --device a100 -o " + page).status == 0);
}

TEST_CASE("planners side by side: a row for each, and all that plan tells of each pair") {
  const Outcome table = rockmate_command("compare " + kChain + " --planners store-all,chen-sqrt --budgets 100%,404,300");
  REQUIRE(table.status == 0);
  CHECK(table.output.find("chen-sqrt") != std::string::npos);
  CHECK(table.output.find("404") != std::string::npos);

  const Outcome outcome =
      rockmate_command("compare " + kChain + " --planners store-all,chen-sqrt --budgets '100%, 404' --json");
  REQUIRE(outcome.status == 0);
  const auto document = nlohmann::json::parse(outcome.output);
  CHECK(document["complete"] == true);
  CHECK(document["store_all_peak_bytes"] == 504);
  REQUIRE(document["results"].size() == 4);
  for (const auto& result : document["results"]) {
    const Outcome alone = rockmate_command("plan " + kChain + " --planner " + result["planner"].get<std::string>() +
                                           " --json --budget " + result["budget_bytes"].dump());
    // Where there is no plan, a line on standard error follows or precedes.
    const std::size_t begin = alone.output.find('{'), end = alone.output.rfind('}');
    REQUIRE(end != std::string::npos);
    auto planned = nlohmann::json::parse(alone.output.substr(begin, end + 1 - begin));
    CHECK(planned["complete"] == true);
    planned.erase("complete");
    planned["plan_seconds"] = result["plan_seconds"];
    CHECK(planned == result);
  }
  CHECK(document["results"][0]["status"] == "optimal");
  CHECK(document["results"][1]["status"] == "infeasible");
  CHECK(document["results"][1]["overhead"].is_null());
  CHECK(document["results"][3]["peak_bytes"] <= 404);
}

TEST_CASE("curve and comparison are written to files that report shows") {
  const Folder folder;
  const std::string curve = folder.file("curve.json"), compared = folder.file("compare.json"), page = folder.file("page.html");
  const std::string schedule = folder.file("schedule.json"), measured = folder.file("measured.json");
  const Outcome printed = rockmate_command("curve " + kChain + " --json -o " + curve);
  REQUIRE(printed.status == 0);
  CHECK(printed.output == read_file(curve));
  CHECK(nlohmann::json::parse(printed.output)["complete"] == true);
  const Outcome comparison = rockmate_command("compare " + kChain + " --budgets 404 --planners dtr,auto -o " + compared +
                                              " --html " + folder.file("compare.html"));
  REQUIRE(comparison.status == 0);
  CHECK(comparison.output.find("overhead at") != std::string::npos);
  CHECK(nlohmann::json::parse(read_file(compared))["results"].size() == 2);
  CHECK(read_file(folder.file("compare.html")).starts_with("<!doctype html>"));
  write_file(measured, R"({"format": "rockmate-measured", "version": 1, "peak_bytes": 400})");
  REQUIRE(rockmate_command("plan " + kChain + " -b 404 -o " + schedule).status == 0);

  const Outcome reported = rockmate_command("report " + kChain + " " + schedule + " -b 404 --curve " + curve + " --compare " +
                                            compared + " --measured " + measured + " --json -o " + page);
  REQUIRE(reported.status == 0);
  const auto shown = nlohmann::json::parse(reported.output);
  CHECK(shown["budget_bytes"] == 404);
  CHECK(shown["planners"] == nlohmann::json({"dtr", "auto"}));
  CHECK(shown["measured_peak_bytes"] == 400);
  CHECK(shown["num_plans"] == nlohmann::json::parse(printed.output)["plans"].size());
  CHECK(read_file(page).find("Predicted against measured") != std::string::npos);

  const Outcome bare = rockmate_command("report " + kChain + " --no-curve --no-planners -o " + page);
  CHECK(bare.status == 0);
  CHECK(read_file(page).find("What other budgets would cost") == std::string::npos);
  const Outcome other = rockmate_command("report " + std::string(ROCKMATE_SOURCE_DIR) + "/tests/graphs/dropout.json --curve " +
                                         curve + " -o " + page);
  CHECK(other.status == 2);
  CHECK(other.output.starts_with("[curve] store_all_peak_bytes: it is of another graph"));
  CHECK(rockmate_command("report " + kChain + " -b 404 --curve " + curve + " -o " + page).status == 2);
  CHECK(
      rockmate_command("report " + std::string(ROCKMATE_SOURCE_DIR) + "/tests/graphs/dropout.json " + schedule + " -o " + page)
          .status == 1);
}

TEST_CASE("a budget that can't be met: status 1, the least one named, nothing written") {
  const Folder folder;
  const Outcome outcome = rockmate_command("plan " + kChain + " -b 300 -o " + folder.file("schedule.json"));
  CHECK(outcome.status == 1);
  CHECK(outcome.output.starts_with("[plan] the budget '300' (300 bytes) can't be met: the least that can is "));
  CHECK(outcome.output.find("no schedule at all holds less than") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a schedule of another graph: status 1 and the first fault") {
  const Folder folder;
  write_file(folder.file("schedule.json"), schedule_to_json({{Action::compute(1)}, 1}));
  const Outcome outcome = rockmate_command("simulate " + kChain + " " + folder.file("schedule.json"));
  CHECK(outcome.status == 1);
  CHECK(outcome.output == "[verify] action 0, compute toy.f2 'f2': input 'a1' is not alive\n");
}

TEST_CASE("bad input: status 2 and one line that says what") {
  const Folder folder;
  write_file(folder.file("cut.json"), read_file(kChain).substr(0, 300));
  for (const std::string& arguments :
       {std::string(), std::string("bogus"), "plan " + kChain, "plan " + kChain + " -b abc", "plan " + kChain + " -b -5",
        "plan " + kChain + " -b 50% --device tpu", "plan " + folder.file("missing.json") + " -b 50%",
        "plan " + folder.file("cut.json") + " -b 50%", "show " + folder.file("cut.json"), "simulate " + kChain + " " + kChain,
        "compare " + kChain + " --budgets 50%,,30%", "compare " + kChain + " --budgets 50%,abc",
        "compare " + kChain + " --planners rotro", "report " + kChain + " -o " + folder.file("no/such/page.html")}) {
    CAPTURE(arguments);
    const Outcome outcome = rockmate_command(arguments);
    CHECK(outcome.status == 2);
    CHECK_FALSE(outcome.output.empty());
  }
}

TEST_CASE("Ctrl-C: status 130, nothing written") {
  const Folder folder;
  const std::string fifo = folder.file("graph"), output = folder.file("schedule.json");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    execl(ROCKMATE_COMMAND, "rockmate", "plan", fifo.c_str(), "-b", "50%", "-o", output.c_str(), nullptr);
    _exit(127);
  }
  // Opening the pipe waits until the command opens its graph, which is after it has begun to listen to interrupts.
  const int pipe = open(fifo.c_str(), O_WRONLY);
  REQUIRE(kill(child, SIGINT) == 0);
  std::signal(SIGPIPE, SIG_IGN);  // the command may be gone already
  const std::string graph = read_file(kChain);
  CHECK(write(pipe, graph.data(), graph.size()) != 0);
  close(pipe);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK_FALSE(std::filesystem::exists(output));
}

namespace {

// Runs the command with standard error on a terminal, sends it an interrupt once the progress there names `stage`, and gives
// its standard output.
Outcome interrupted_at(const std::string& stage, const std::vector<std::string>& arguments) {
  int terminal = -1, command_terminal = -1, ends[2];
  REQUIRE(openpty(&terminal, &command_terminal, nullptr, nullptr, nullptr) == 0);
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(command_terminal, STDERR_FILENO);
    for (int file : {ends[0], ends[1], terminal, command_terminal}) close(file);
    std::vector<char*> argv = {const_cast<char*>("rockmate")};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(ROCKMATE_COMMAND, argv.data());
    _exit(127);
  }
  close(ends[1]);
  close(command_terminal);
  std::string progress;
  std::array<char, 4096> buffer;
  bool sent = false;
  while (true) {
    const ssize_t n = read(terminal, buffer.data(), buffer.size());
    if (n <= 0) break;  // the command's end of the terminal is closed
    progress.append(buffer.data(), static_cast<std::size_t>(n));
    if (!sent && progress.find(stage) != std::string::npos) sent = kill(child, SIGINT) == 0;
  }
  CHECK(sent);
  CHECK(progress.find("interrupted") != std::string::npos);
  Outcome outcome;
  for (ssize_t n; (n = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    outcome.output.append(buffer.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  close(terminal);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace

TEST_CASE("Ctrl-C in the middle of a long plan: status 130, the best schedule until then is printed and written") {
  const Folder folder;
  const std::string graph = folder.file("graph.json"), output = folder.file("schedule.json");
  write_file(graph, graph_to_json(testing::transformer(12)));
  // An hour of polishing: it ends by the interrupt alone.
  const Outcome outcome = interrupted_at(
      "polish", {"plan", graph, "-b", "50%", "--time-limit", "3600", "--polish", "3600", "--json", "-o", output});
  CHECK(outcome.status == 130);
  const auto figures = nlohmann::json::parse(outcome.output);
  CHECK(figures["complete"] == false);
  CHECK(figures["peak_bytes"] <= figures["budget_bytes"]);
  const Outcome simulated = rockmate_command("simulate " + graph + " " + output + " --json");
  REQUIRE(simulated.status == 0);
  CHECK(nlohmann::json::parse(simulated.output)["peak_bytes"] == figures["peak_bytes"]);
}

TEST_CASE("Ctrl-C in the middle of a curve: status 130, the plans until then are printed and written") {
  const Folder folder;
  const std::string graph = folder.file("graph.json"), output = folder.file("curve.json");
  write_file(graph, graph_to_json(testing::transformer(12)));
  // The finest grid of options: far more work than it takes to see the first progress.
  const Outcome outcome = interrupted_at("blocks", {"curve", graph, "--save-levels", "30", "--peak-levels", "30",
                                                    "--memory-steps", "20000", "--json", "-o", output});
  CHECK(outcome.status == 130);
  const auto figures = nlohmann::json::parse(outcome.output);
  CHECK(figures["complete"] == false);
  CHECK(figures["plans"].size() >= 1);
  CHECK(figures["plans"].back()["peak_bytes"] == figures["store_all_peak_bytes"]);
  CHECK(read_file(output) == outcome.output);
}

TEST_CASE("Ctrl-C in the middle of a comparison: status 130, what is done by then is told") {
  std::string budgets = "404";
  for (int i = 0; i < 5000; ++i) budgets += ",404";
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    execl(ROCKMATE_COMMAND, "rockmate", "compare", kChain.c_str(), "--planners", "chen-recursive,chen-sqrt", "--budgets",
          budgets.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string output;
  std::array<char, 4096> buffer;
  bool sent = false;
  while (true) {
    const ssize_t n = read(ends[0], buffer.data(), buffer.size());
    if (n <= 0) break;
    output.append(buffer.data(), static_cast<std::size_t>(n));
    if (!sent && output.find("overhead at") != std::string::npos) {  // the heading: the planners begin
      CHECK(kill(child, SIGINT) == 0);
      sent = true;
    }
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(output.find("no schedule below") != std::string::npos);
  CHECK(output.find("chen-sqrt") == std::string::npos);
  CHECK(output.find("interrupted") != std::string::npos);
}

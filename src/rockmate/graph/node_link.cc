#include "rockmate/graph/node_link.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "rockmate/graph/json_reader.h"

namespace rockmate {
namespace {

using nlohmann::json;

struct Node {
  std::string name;
  double time_us = 0;
  Bytes bytes = 0;
  bool backward = false;
  std::vector<int> reads;  // other nodes, in the order of the links
};

// Numbers and texts name nodes alike.
std::string id_text(const json& id) { return id.is_string() ? id.get<std::string>() : id.dump(); }

double cost_of(const json& node, const char* key, const JsonPlace& place) {
  if (!node.contains(key)) place.in(key).fail("is missing");
  if (!node[key].is_number()) place.in(key).fail("expected a number, found " + std::string(node[key].type_name()));
  const double cost = node[key].get<double>();
  if (!std::isfinite(cost) || cost < 0 || cost > 9e18) place.in(key).fail("is negative or no size");
  return cost;
}

const json& array_of(const json& document, const char* key) {
  const JsonPlace top{"import", ""};
  if (!document.is_object()) top.fail("expected an object in NetworkX node-link form");
  if (!document.contains(key)) top.in(key).fail("is missing: this is no graph in NetworkX node-link form");
  if (!document[key].is_array()) top.in(key).fail("expected an array");
  return document[key];
}

class Reader {
 public:
  explicit Reader(const json& document) {
    if (document.is_object() && document.contains("directed") && document["directed"] == false) {
      JsonPlace{"import", "directed"}.fail("the graph is undirected, so nothing says what a node reads");
    }
    const json& nodes = array_of(document, "nodes");
    for (std::size_t i = 0; i < nodes.size(); ++i) read_node(nodes[i], JsonPlace{"import", "nodes"}.at(i));
    const char* key = document.contains("links") ? "links" : "edges";
    const json& links = array_of(document, key);
    for (std::size_t i = 0; i < links.size(); ++i) read_link(links[i], JsonPlace{"import", key}.at(i));
    if (nodes_.empty()) JsonPlace{"import", "nodes"}.fail("the graph is empty");
  }

  TrainingGraph graph(const std::string& name) const {
    TrainingGraph result;
    result.name = name;
    result.has_boundary = false;
    std::vector<ValueId> place(nodes_.size());
    for (int node : topological_order()) {
      const Node& from = nodes_[node];
      Op op;
      op.name = from.name;
      op.target = op.name;
      // Nodes that cost the same are the same to a planner: equal blocks are solved once.
      op.signature = std::to_string(from.time_us) + " for " + std::to_string(from.bytes);
      op.pass = from.backward ? Pass::kBackward : Pass::kForward;
      op.time_us = from.time_us;
      for (int input : from.reads) op.inputs.push_back(place[input]);
      place[node] = result.num_values();
      op.outputs = {place[node]};
      result.values.push_back({.name = from.name,
                               .bytes = from.bytes,
                               .kind = from.backward ? ValueKind::kGradient : ValueKind::kActivation,
                               .retention = Retention::kUntilLastUse,
                               .producer = result.num_ops()});
      result.ops.push_back(std::move(op));
    }
    result.values.back().retention = Retention::kUntilStepEnd;
    check_graph(result);
    return result;
  }

 private:
  void read_node(const json& node, const JsonPlace& place) {
    if (!node.is_object()) place.fail("expected an object");
    if (!node.contains("id")) place.in("id").fail("is missing");
    Node read;
    const std::string id = id_text(node["id"]);
    if (!index_.emplace(id, static_cast<int>(nodes_.size())).second) place.in("id").fail("'" + id + "' is another node's too");
    read.name = node.contains("name") ? id_text(node["name"]) : id;
    if (!names_.insert(read.name).second) {
      read.name += "#" + id;
      names_.insert(read.name);
    }
    read.time_us = cost_of(node, "cost_cpu", place);
    read.bytes = static_cast<Bytes>(std::llround(cost_of(node, "cost_ram", place)));
    if (node.contains("backward")) {
      if (!node["backward"].is_boolean()) place.in("backward").fail("expected true or false");
      read.backward = node["backward"].get<bool>();
    }
    nodes_.push_back(std::move(read));
  }

  int end_of(const json& link, const char* key, const JsonPlace& place) const {
    if (!link.is_object() || !link.contains(key)) place.in(key).fail("is missing");
    const std::string id = id_text(link[key]);
    const auto found = index_.find(id);
    if (found == index_.end()) place.in(key).fail("there is no node '" + id + "'");
    return found->second;
  }

  void read_link(const json& link, const JsonPlace& place) {
    const int source = end_of(link, "source", place), target = end_of(link, "target", place);
    std::vector<int>& reads = nodes_[target].reads;
    if (std::find(reads.begin(), reads.end(), source) == reads.end()) reads.push_back(source);
  }

  // Kahn's, taking the first ready node of the file each time: the file's own order when that is topological.
  std::vector<int> topological_order() const {
    std::vector<int> waits_for(nodes_.size());
    std::vector<std::vector<int>> readers(nodes_.size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      waits_for[i] = static_cast<int>(nodes_[i].reads.size());
      for (int read : nodes_[i].reads) readers[read].push_back(static_cast<int>(i));
      if (waits_for[i] == 0) ready.push(static_cast<int>(i));
    }
    std::vector<int> order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (int reader : readers[order.back()]) {
        if (--waits_for[reader] == 0) ready.push(reader);
      }
    }
    if (order.size() == nodes_.size()) return order;
    const auto stuck = std::find_if(waits_for.begin(), waits_for.end(), [](int count) { return count > 0; });
    const Node& node = nodes_[stuck - waits_for.begin()];
    JsonPlace{"import", "links"}.fail("they make a circle through node '" + node.name + "': no order of the ops is possible");
  }

  std::vector<Node> nodes_;
  std::unordered_map<std::string, int> index_;
  std::unordered_set<std::string> names_;
};

}  // namespace

TrainingGraph graph_from_node_link(const std::string& text) {
  const json document = parse_json(text, "import");
  const Reader reader(document);
  std::string name = "imported";
  if (document.contains("graph") && document["graph"].is_object() && document["graph"].contains("name")) {
    name = id_text(document["graph"]["name"]);
  }
  return reader.graph(name);
}

}  // namespace rockmate

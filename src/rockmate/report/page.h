// The frame of every report: one HTML file with its styles and a few lines of script inside, light or dark as the reader's
// system is, wide or narrow as the screen is; it asks nothing of any network.
#pragma once

#include <string>
#include <vector>

namespace rockmate {

std::string escaped(const std::string& text);  // for HTML text and attributes

// The whole page around `body`.
std::string html_page(const std::string& title, const std::string& subtitle, const std::string& body);

struct Section {
  std::string heading, body;  // no body: it is left out
};

std::string section(const std::string& heading, const std::string& body);

// Several sections, one after the other, below links to each of them. On a phone the links are a row to push sideways.
std::string linked_sections(const std::vector<Section>& sections);

// A sentence or two beside the figures.
std::string paragraph(const std::string& text);

// A body that opens when its summary is clicked.
std::string folded(const std::string& summary, const std::string& body);

struct LegendEntry {
  std::string label;
  int color = 0;  // which of the page's eight
  bool is_dashed = false;
};

// What the colours of a picture mean.
std::string html_legend(const std::vector<LegendEntry>& entries);

struct Tile {
  std::string label, value, detail;
};

// Large figures side by side.
std::string tiles(const std::vector<Tile>& tiles);

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // plain text; the first column is left-aligned, the others are figures
  std::vector<double> bars;                    // per row a share from 0 to 1, drawn behind the first column; empty for none
};

std::string html_table(const Table& table);

}  // namespace rockmate

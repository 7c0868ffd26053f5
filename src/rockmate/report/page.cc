#include "rockmate/report/page.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "rockmate/report/page_assets.h"

namespace rockmate {

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

namespace {

// A heading as the name of a place in the page: letters and digits, words joined by hyphens.
std::string anchor(const std::string& heading) {
  std::string name;
  for (const char c : heading) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    if (is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      name += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  return name;
}

}  // namespace

std::string html_page(const std::string& title, const std::string& subtitle, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
         escaped(title) + "</title>\n<style>" + kPageStyle + "</style>\n</head>\n<body>\n<main>\n<header><h1>" +
         escaped(title) + "</h1>" + (subtitle.empty() ? "" : "<p>" + escaped(subtitle) + "</p>") + "</header>\n" + body +
         "</main>\n<div id=\"tip\" hidden></div>\n<script>" + kPageScript + "</script>\n</body>\n</html>\n";
}

std::string section(const std::string& heading, const std::string& body) {
  return "<section>\n<h2>" + escaped(heading) + "</h2>\n" + body + "</section>\n";
}

std::string linked_sections(const std::vector<Section>& sections) {
  std::string links, bodies;
  for (const Section& each : sections) {
    if (each.body.empty()) continue;
    const std::string place = anchor(each.heading);
    links += "<a href=\"#" + place + "\">" + escaped(each.heading) + "</a>\n";
    bodies += "<div id=\"" + place + "\">\n" + section(each.heading, each.body) + "</div>\n";
  }
  return "<nav aria-label=\"Contents\">\n" + links + "</nav>\n" + bodies;
}

std::string paragraph(const std::string& text) { return "<p class=\"note\">" + escaped(text) + "</p>\n"; }

std::string folded(const std::string& summary, const std::string& body) {
  return "<details><summary>" + escaped(summary) + "</summary>\n" + body + "</details>\n";
}

std::string html_legend(const std::vector<LegendEntry>& entries) {
  std::string html = "<div class=\"legend\">";
  for (const LegendEntry& entry : entries) {
    html += "<span><i class=\"key c" + std::to_string(entry.color % 8) + (entry.is_dashed ? " dashed" : "") + "\"></i>" +
            escaped(entry.label) + "</span>";
  }
  return html + "</div>\n";
}

std::string tiles(const std::vector<Tile>& tiles) {
  std::string html = "<div class=\"tiles\">\n";
  for (const Tile& tile : tiles) {
    html += "<div class=\"tile\"><span>" + escaped(tile.label) + "</span><b>" + escaped(tile.value) + "</b><small>" +
            escaped(tile.detail) + "</small></div>\n";
  }
  return html + "</div>\n";
}

std::string html_table(const Table& table) {
  std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const std::string& column : table.columns) html += "<th scope=\"col\">" + escaped(column) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    html += "<tr>";
    for (std::size_t j = 0; j < table.rows[i].size(); ++j) {
      std::string bar;
      if (j == 0 && i < table.bars.size()) {
        std::array<char, 64> style;
        std::snprintf(style.data(), style.size(), " style=\"--bar:%.1f%%\"", 100 * std::clamp(table.bars[i], 0.0, 1.0));
        bar = " class=\"bar\"" + std::string(style.data());
      }
      html += (j == 0 ? "<th scope=\"row\"" + bar + ">" : "<td>") + escaped(table.rows[i][j]) + (j == 0 ? "</th>" : "</td>");
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

}  // namespace rockmate

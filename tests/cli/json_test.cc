#include "cli/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include "base/utf8.h"
#include "support/process.h"

namespace kvasir::cli {
namespace {

template <class T>
std::string json_of(const T& value) {
  std::string text;
  JsonWriter(text).value(value);
  return text;
}

// Python's reader as a judge: strict, in UTF-8, without the constants that are no JSON. Answers what it
// reads, as JSON in one line with sorted keys and ASCII only.
std::string read_back(const std::string& json) {
  const test::ProgramRun run = test::run_program("/usr/bin/python3", {"-c", R"(
import json, sys
def no(constant): raise ValueError(constant)
value = json.loads(sys.stdin.buffer.read().decode("utf-8", "strict"), parse_constant=no)
print(json.dumps(value, sort_keys=True), end=""))"},
                                                 json);
  return run.status == 0 ? run.out : "refused: " + run.err;
}

TEST(JsonWriter, NestsObjectsAndArrays) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("a", 1).key("b").begin_array();
  json.value("x").null().value(true).begin_object().end_object().begin_array().end_array();
  json.end_array().key("c").begin_object().member("d", false).end_object().end_object();
  EXPECT_EQ(text, R"({"a":1,"b":["x",null,true,{},[]],"c":{"d":false}})");
}

TEST(JsonWriter, GoesOnAfterItsOwnerTookTheText) {
  std::string text;
  std::string all;
  JsonWriter json(text);
  const auto take = [&] {
    all += text;
    text.clear();
  };
  json.begin_array().value(1);
  take();
  json.value(2);
  take();
  json.end_array();
  take();
  EXPECT_EQ(all, "[1,2]");
}

TEST(JsonWriter, WritesNumbersThatReadBackTheSame) {
  EXPECT_EQ(json_of(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(json_of(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(json_of(std::uint8_t{7}), "7");
  EXPECT_EQ(json_of(0.1F), "0.1");
  EXPECT_EQ(json_of(0.1), "0.1");
  EXPECT_EQ(json_of(-0.0), "-0");
  EXPECT_EQ(json_of(1e300), "1e+300");
  for (const double number : {0.1, 1.0 / 3, 5e-324, std::numeric_limits<double>::max(), -12345.0}) {
    EXPECT_EQ(std::strtod(json_of(number).c_str(), nullptr), number);
  }
}

TEST(JsonWriter, WritesNullForNumbersThatAreNotFinite) {
  EXPECT_EQ(json_of(NAN), "null");
  EXPECT_EQ(json_of(INFINITY), "null");
  EXPECT_EQ(json_of(-static_cast<double>(INFINITY)), "null");
}

TEST(JsonWriter, EscapesWhatMustNotStandInAString) {
  EXPECT_EQ(json_of("\"\\/\n\r\t"), R"("\"\\/\n\r\t")");
  EXPECT_EQ(json_of(std::string_view("\0\x1F\x7F", 3)), R"("\u0000\u001f\u007f")");
  EXPECT_EQ(json_of("gr\xC3\xBC\xC3\x9F \xF0\x9F\x90\xA6"), "\"gr\xC3\xBC\xC3\x9F \xF0\x9F\x90\xA6\"");
}

TEST(JsonWriter, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(json_of("a\xFF\xC3(b"), "\"a\xEF\xBF\xBD\xEF\xBF\xBD(b\"");
  EXPECT_EQ(json_of("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

// Everything at once, read by another program.
TEST(JsonWriter, IsReadByOthersWhateverTheStringsHold) {
  std::mt19937_64 random(1);
  std::string text;
  std::string again;
  JsonWriter json(text);
  JsonWriter replaced(again);
  json.begin_array();
  replaced.begin_array();
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 12, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    json.value(bytes);
    std::string expected;
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::size_t length = base::utf8_sequence(rest);
      expected += length == 0 ? "\xEF\xBF\xBD" : std::string(rest.substr(0, length));
      rest.remove_prefix(length == 0 ? 1 : length);
    }
    replaced.value(expected);
  }
  json.end_array();
  replaced.end_array();
  const std::string read = read_back(text);
  EXPECT_TRUE(read.starts_with("[\"")) << read.substr(0, 200);
  EXPECT_EQ(read, read_back(again));
  EXPECT_TRUE(base::is_utf8(text));
}

TEST(JsonWriter, HasAJudgeThatCanRefuse) {
  EXPECT_TRUE(read_back("[1,]").starts_with("refused"));
  EXPECT_TRUE(read_back("NaN").starts_with("refused"));
  EXPECT_TRUE(read_back("\"\xFF\"").starts_with("refused"));
  EXPECT_EQ(read_back("{\"b\":1,\"a\":[2]}"), "{\"a\": [2], \"b\": 1}");
}

}  // namespace
}  // namespace kvasir::cli

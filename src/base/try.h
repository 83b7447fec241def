// Early return for functions that answer a Result.
#pragma once

#include <utility>

#include "kvasir/result.h"

#define KVASIR_CONCAT_INNER(a, b) a##b
#define KVASIR_CONCAT(a, b) KVASIR_CONCAT_INNER(a, b)

// Returns the error of `expression`, a Status, to the caller; goes on otherwise.
#define KVASIR_TRY(expression)                                 \
  do {                                                         \
    if (auto kvasir_status = (expression); !kvasir_status) {   \
      return ::kvasir::fail(std::move(kvasir_status).error()); \
    }                                                          \
  } while (false)

// `KVASIR_ASSIGN(auto value, expression)`: the value of a Result, or returns its error to the caller.
#define KVASIR_ASSIGN(declaration, expression) \
  KVASIR_ASSIGN_INNER(KVASIR_CONCAT(kvasir_result_, __LINE__), declaration, expression)
#define KVASIR_ASSIGN_INNER(result, declaration, expression) \
  auto result = (expression);                                \
  if (!result) {                                             \
    return ::kvasir::fail(std::move(result).error());        \
  }                                                          \
  declaration = *std::move(result)

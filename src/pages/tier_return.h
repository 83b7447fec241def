// The reservation of cells for a conversation that comes back from the tiers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/result.h"
#include "pages/types.h"

namespace kvasir::pages {

class PageStore;

// Move-only; must not outlive its store. Destroyed without commit it gives everything back, the promise that
// came with it included, and the conversation lies in the tiers as before.
class ReturnTicket {
 public:
  ReturnTicket(ReturnTicket&& other) noexcept;
  ReturnTicket& operator=(ReturnTicket&&) = delete;
  ~ReturnTicket();

  // What must be read back before commit.
  [[nodiscard]] std::span<const FetchCells> jobs() const noexcept { return jobs_; }

  // Lets all who hold these cells find them in the pool; the ticket is then closed. kOutOfMemory, with
  // nothing changed: it may be tried again.
  [[nodiscard]] Status commit();

 private:
  friend class PageStore;
  ReturnTicket(PageStore& store, TableId table, std::uint64_t promised_before) noexcept;
  void install(const FetchCells& job) noexcept;
  void close() noexcept;

  PageStore* store_;
  TableId table_;
  std::uint64_t promised_before_ = 0;
  std::vector<FetchCells> jobs_;
};

}  // namespace kvasir::pages

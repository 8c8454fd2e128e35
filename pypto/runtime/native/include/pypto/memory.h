// Buffers that a run owns: workspaces, and in checked mode guarded copies of the arguments.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pypto/types.h"

namespace pypto {

inline constexpr size_t kBufferAlignment = 512;

// Memory of one tensor, freed at destruction.
//
// A plain buffer is uninitialised. A guarded one is filled with 0xFF (a NaN in every floating-point type), ends (up to
// its alignment) at an inaccessible page and begins after one; the bytes left over up to those pages hold a pattern
// that `breached` looks at.
class Buffer {
 public:
  static Buffer plain(int64_t bytes) {
    Buffer buffer(static_cast<size_t>(bytes));
    const size_t rounded = round_up(buffer.size_, kBufferAlignment);
    buffer.data_ = static_cast<std::byte*>(std::aligned_alloc(kBufferAlignment, rounded));
    if (buffer.data_ == nullptr) throw out_of_memory(bytes);
    return buffer;
  }

  static Buffer guarded(int64_t bytes) {
    Buffer buffer(static_cast<size_t>(bytes));
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t padded = round_up(buffer.size_, kGuardedAlignment);
    buffer.inner_size_ = round_up(padded, page);
    // Accesses that overshoot by a whole tensor still hit the guard.
    const size_t guard = std::max<size_t>(kLeastGuard, buffer.inner_size_);
    buffer.mapping_size_ = buffer.inner_size_ + 2 * guard;
    void* mapping = mmap(nullptr, buffer.mapping_size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) throw out_of_memory(bytes);
    buffer.mapping_ = static_cast<std::byte*>(mapping);
    buffer.inner_ = buffer.mapping_ + guard;
    if (mprotect(buffer.inner_, buffer.inner_size_, PROT_READ | PROT_WRITE) != 0) throw out_of_memory(bytes);
    std::memset(buffer.inner_, kPattern, buffer.inner_size_);
    buffer.data_ = buffer.inner_ + (buffer.inner_size_ - padded);
    std::memset(buffer.data_, 0xFF, buffer.size_);
    return buffer;
  }

  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  ~Buffer() {
    if (mapping_ != nullptr)
      munmap(mapping_, mapping_size_);
    else
      std::free(data_);
  }

  std::byte* data() const { return data_; }
  int64_t size() const { return static_cast<int64_t>(size_); }

  // Makes a guarded buffer read-only: a kernel that writes it is stopped there.
  void protect() const { mprotect(inner_, inner_size_, PROT_READ); }

  // Whether the bytes around a guarded buffer were overwritten.
  bool breached() const {
    const auto differs = [](std::byte value) { return value != std::byte{kPattern}; };
    return std::any_of(inner_, data_, differs) || std::any_of(data_ + size_, inner_ + inner_size_, differs);
  }

  // Whether an address lies in a guarded buffer or its guards.
  bool is_near(const void* address) const {
    const std::byte* byte = static_cast<const std::byte*>(address);
    return mapping_ != nullptr && byte >= mapping_ && byte < mapping_ + mapping_size_;
  }

 private:
  // Enough for every vector instruction, small enough to catch an element behind the end of most tensors at once.
  static constexpr size_t kGuardedAlignment = 64;
  static constexpr size_t kLeastGuard = size_t{1} << 20;
  static constexpr unsigned char kPattern = 0xA5;

  explicit Buffer(size_t size) : size_(size) {}

  static size_t round_up(size_t value, size_t step) { return (value + step - 1) / step * step; }

  static Error out_of_memory(int64_t bytes) {
    return Error("no memory for a workspace of " + std::to_string(bytes) + " bytes");
  }

  void swap(Buffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapping_, other.mapping_);
    std::swap(mapping_size_, other.mapping_size_);
    std::swap(inner_, other.inner_);
    std::swap(inner_size_, other.inner_size_);
  }

  std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::byte* mapping_ = nullptr;  // guarded buffers: pages with both guards
  size_t mapping_size_ = 0;
  std::byte* inner_ = nullptr;  // the accessible pages
  size_t inner_size_ = 0;
};

// The guarded buffers of a checked run, in order of creation. May grow while other threads and signal handlers look.
class GuardedBuffers {
 public:
  GuardedBuffers() = default;
  GuardedBuffers(const GuardedBuffers&) = delete;
  GuardedBuffers& operator=(const GuardedBuffers&) = delete;
  ~GuardedBuffers() {
    for (const Node* node = first_; node != nullptr;) delete std::exchange(node, node->next.load());
  }

  const Buffer& add(int64_t bytes) {
    Node* node = new Node{Buffer::guarded(bytes), nullptr};
    (last_ == nullptr ? first_ : last_->next).store(node);
    last_ = node;
    return node->buffer;
  }

  // Calls `look(position, buffer)` for each until it says that it has seen enough.
  template <class Look>
  void each(Look look) const {
    int32_t position = 0;
    for (const Node* node = first_; node != nullptr && !look(position, node->buffer); node = node->next) ++position;
  }

  // Position of a buffer whose surroundings were overwritten, -1 when there is none.
  int32_t breached() const {
    int32_t found = -1;
    each([&](int32_t position, const Buffer& buffer) {
      if (buffer.breached()) found = position;
      return found >= 0;
    });
    return found;
  }

 private:
  struct Node {
    Buffer buffer;
    std::atomic<Node*> next;
  };

  std::atomic<Node*> first_{nullptr};
  Node* last_ = nullptr;  // of the thread that adds
};

// Makes workspaces and counts the bytes of those that somebody still holds.
class Workspaces {
 public:
  // `guarded`: where the buffers of a checked run are kept until its end, or nullptr.
  Workspaces(GuardedBuffers* guarded, int64_t limit) : guarded_(guarded), limit_(limit) {}

  int64_t limit() const { return limit_; }
  int64_t used() const { return used_.load(); }
  bool fits(int64_t bytes) const { return bytes <= limit_ - used_.load(); }

  // New memory, which goes when the last copy of the owner goes; the owner must not outlive this object.
  std::pair<std::byte*, std::shared_ptr<const void>> make(int64_t bytes) {
    if (guarded_ != nullptr) {
      std::byte* data = guarded_->add(bytes).data();
      return {data, std::make_shared<const Held>(std::nullopt, bytes, used_)};
    }
    Buffer buffer = Buffer::plain(bytes);
    std::byte* data = buffer.data();
    return {data, std::make_shared<const Held>(std::move(buffer), bytes, used_)};
  }

 private:
  struct Held {
    Held(std::optional<Buffer> memory, int64_t bytes, std::atomic<int64_t>& used)
        : buffer(std::move(memory)), size(bytes), total(used) {
      total += size;
    }
    ~Held() {
      buffer.reset();
      total -= size;
    }
    std::optional<Buffer> buffer;
    const int64_t size;
    std::atomic<int64_t>& total;
  };

  GuardedBuffers* const guarded_;
  const int64_t limit_;
  std::atomic<int64_t> used_{0};
};

}  // namespace pypto

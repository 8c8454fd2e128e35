// Stand-ins for the programs of a CANN toolkit: they check their flags as strictly as they can, refuse what they do not
// know, and derive their output from their input. What they write is no code for any machine.
//
// The program acts as what its own name says. "STAND_IN:exit", "STAND_IN:sleep", "STAND_IN:nothing" and "STAND_IN:junk" in
// the source make it fail, never end, write nothing, or write no ELF file.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using Strings = std::vector<std::string>;
constexpr uint16_t kNoMachine = 0xFEFE, kAArch64 = 183;

[[noreturn]] void fail(const std::string& message) {
  std::cerr << "stand-in: error: " << message << "\n";
  std::exit(1);
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("cannot read '" + path + "'");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool exists(const std::string& path) { return access(path.c_str(), R_OK) == 0; }

// One section of an ELF file.
struct Section {
  std::string name;
  uint32_t type;
  uint32_t link;
  uint64_t entry_size;
  std::string data;
};

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void write_elf(const std::string& path, uint16_t type, uint16_t machine, std::vector<Section> sections) {
  std::string names(1, '\0');
  sections.push_back({".shstrtab", 3, 0, 0, ""});
  std::vector<uint32_t> at;
  for (const Section& section : sections) {
    at.push_back(static_cast<uint32_t>(names.size()));
    names += section.name + '\0';
  }
  sections.back().data = names;
  std::string body;
  std::vector<uint64_t> offsets;
  for (const Section& section : sections) {
    body.resize((body.size() + 7) / 8 * 8);
    offsets.push_back(64 + body.size());
    body += section.data;
  }
  body.resize((body.size() + 7) / 8 * 8);
  std::string out("\x7f" "ELF\x02\x01\x01", 7);
  out.resize(16);
  put(out, type), put(out, machine), put(out, uint32_t{1});
  put(out, uint64_t{0}), put(out, uint64_t{0}), put(out, uint64_t{64 + body.size()});
  put(out, uint32_t{0}), put(out, uint16_t{64}), put(out, uint16_t{56}), put(out, uint16_t{0});
  put(out, uint16_t{64}), put(out, static_cast<uint16_t>(sections.size() + 1)), put(out, static_cast<uint16_t>(sections.size()));
  out += body + std::string(64, '\0');
  for (size_t i = 0; i < sections.size(); ++i) {
    put(out, at[i]), put(out, sections[i].type), put(out, uint64_t{0}), put(out, uint64_t{0}), put(out, offsets[i]);
    put(out, static_cast<uint64_t>(sections[i].data.size())), put(out, sections[i].link), put(out, uint32_t{0});
    put(out, uint64_t{8}), put(out, sections[i].entry_size);
  }
  std::ofstream(path, std::ios::binary) << out;
}

// Function symbols, all in section 1.
void add_symbols(std::vector<Section>& sections, bool dynamic, const Strings& functions) {
  std::string names(1, '\0'), symbols(24, '\0');
  for (const std::string& function : functions) {
    put(symbols, static_cast<uint32_t>(names.size())), put(symbols, uint8_t{0x12}), put(symbols, uint8_t{0});
    put(symbols, uint16_t{1}), put(symbols, uint64_t{0}), put(symbols, uint64_t{8});
    names += function + '\0';
  }
  const auto strings = static_cast<uint32_t>(sections.size() + 2);
  sections.push_back({dynamic ? ".dynsym" : ".symtab", dynamic ? 11u : 2u, strings, 24, symbols});
  sections.push_back({dynamic ? ".dynstr" : ".strtab", 3, 0, 0, names});
}

std::string digest(const std::string& text) {
  std::string out;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    uint64_t value = 14695981039346656037u * seed;
    for (const char c : text) value = (value ^ static_cast<uint8_t>(c)) * 1099511628211u;
    put(out, value);
  }
  return out.substr(0, 20);
}

// What a compiler was asked for. Flags are taken out of the list as they are understood.
struct Request {
  Strings flags, includes, forced;
  std::string source, output, dependencies;
  bool lists_dependencies = false;

  bool take(const std::string& flag) {
    for (auto it = flags.begin(); it != flags.end(); ++it)
      if (*it == flag) return flags.erase(it), true;
    return false;
  }
  void need(const std::string& flag) {
    if (!take(flag)) fail("the flag '" + flag + "' is missing");
  }
};

Request parse(int argc, char** argv) {
  static const std::set<std::string> with_value{"-o", "-MF", "-include", "-mllvm", "-x", "-m", "-e"};
  Request request;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i], value;
    if (with_value.count(argument) != 0) {
      if (++i == argc) fail("the flag '" + argument + "' has no value");
      value = argv[i];
    }
    if (argument == "-o") request.output = value;
    else if (argument == "-MF") request.dependencies = value;
    else if (argument == "-include") request.forced.push_back(value);
    else if (argument == "-MD") request.lists_dependencies = true;
    else if (!value.empty()) request.flags.push_back(argument + " " + value);
    else if (argument.rfind("-I", 0) == 0) request.includes.push_back(argument.substr(2));
    else if (argument[0] == '-') request.flags.push_back(argument);
    else if (request.source.empty()) request.source = argument;
    else fail("a second input '" + argument + "'");
  }
  if (request.source.empty() || request.output.empty()) fail("no input or no output");
  for (const std::string& folder : request.includes)
    if (!exists(folder)) fail("the folder '" + folder + "' does not exist");
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string name(*variable, strchr(*variable, '=') - *variable);
    if (name != "LC_ALL" && name != "LD_LIBRARY_PATH" && name != "PATH" && name != "PWD" && name != "TMPDIR" && name != "TZ")
      fail("the variable '" + name + "' of the caller reached the compiler");
  }
  return request;
}

void finish(const Request& request) {
  if (!request.flags.empty()) fail("unknown flag '" + request.flags.front() + "'");
}

// The text of the source and of all files it includes, in order of first appearance.
class Reader {
 public:
  explicit Reader(const Request& request) : request_(request) {}

  void add(const std::string& path) {
    if (!seen_.insert(path).second) return;
    paths_.push_back(path);
    const std::string own = read(path);
    text_ += own;
    std::istringstream lines(own);
    for (std::string line; std::getline(lines, line);) {
      char name[512];
      const bool quoted = std::sscanf(line.c_str(), " # include \"%511[^\"]\"", name) == 1;
      if (!quoted && std::sscanf(line.c_str(), " # include <%511[^>]>", name) != 1) continue;
      const std::string found = find(name, path);
      if (!found.empty()) add(found);
      else if (quoted && path.rfind("w/", 0) == 0) fail(path + ": no file '" + name + "'");
    }
  }

  std::string find(const std::string& name, const std::string& from) const {
    if (name[0] == '/') return exists(name) ? name : "";
    const std::string beside = from.substr(0, from.rfind('/') + 1) + name;
    if (!from.empty() && exists(beside)) return beside;
    for (const std::string& folder : request_.includes)
      if (exists(folder + "/" + name)) return folder + "/" + name;
    return "";
  }

  const std::string& text() const { return text_; }

  void write_dependencies() const {
    if (!request_.lists_dependencies) return;
    std::ofstream out(request_.dependencies);
    out << request_.output << ":";
    for (const std::string& path : paths_) out << " \\\n " << path;
    out << "\n";
  }

 private:
  const Request& request_;
  std::set<std::string> seen_;
  Strings paths_;
  std::string text_;
};

Reader read_sources(const Request& request) {
  Reader reader(request);
  for (const std::string& header : request.forced) {
    const std::string found = reader.find(header, "");
    if (found.empty()) fail("no file '" + header + "'");
    reader.add(found);
  }
  reader.add(request.source);
  const std::string own = read(request.source);
  if (own.find("STAND_IN:exit") != std::string::npos) fail("told to fail");
  if (own.find("STAND_IN:sleep") != std::string::npos) sleep(600);
  if (own.find("STAND_IN:nothing") != std::string::npos) std::exit(0);
  reader.write_dependencies();
  if (own.find("STAND_IN:junk") != std::string::npos) std::ofstream(request.output) << "junk", std::exit(0);
  return reader;
}

int ccec(Request request) {
  for (const char* flag : {"-c", "-O3", "-g", "-x cce", "-Wall", "-std=c++17", "--cce-aicore-only",
                           "-mllvm -cce-aicore-stack-size=0x8000", "-mllvm -cce-aicore-function-stack-size=0x8000",
                           "-mllvm -cce-aicore-record-overflow=false", "-mllvm -cce-aicore-addr-transform",
                           "-mllvm -cce-aicore-dcci-insert-for-scalar=false", "-DMEMORY_BASE"})
    request.need(flag);
  std::string architecture;
  for (const char* known : {"dav-c220-vec", "dav-c220-cube", "dav-c310-vec", "dav-c310-cube"})
    if (request.take(std::string("--cce-aicore-arch=") + known)) architecture = known;
  if (architecture.empty()) fail("no known --cce-aicore-arch");
  if (architecture.rfind("dav-c310", 0) == 0) request.need("-mllvm -cce-vf-aa-between-iters=true");
  finish(request);
  const Reader reader = read_sources(request);
  std::vector<Section> sections{{".text", 1, 0, 0, "code of the stand-in for " + architecture + ": " + digest(reader.text())}};
  const bool has_entry = reader.text().find("void kernel_entry(") != std::string::npos;
  add_symbols(sections, false, has_entry ? Strings{"kernel_entry"} : Strings{});
  write_elf(request.output, 1, kNoMachine, sections);
  return 0;
}

int ld_lld(Request request) {
  for (const char* flag : {"-m aicorelinux", "-Ttext=0", "-e kernel_entry"}) request.need(flag);
  finish(request);
  const std::string object = read(request.source);
  uint16_t type = 0, machine = 0;
  if (object.size() < 64 || object.compare(0, 4, "\x7f" "ELF") != 0) fail("the input is no object file");
  std::memcpy(&type, object.data() + 16, 2), std::memcpy(&machine, object.data() + 18, 2);
  if (type != 1 || machine != kNoMachine) fail("the input is no object file of this compiler");
  if (object.find(std::string("\0kernel_entry\0", 14)) == std::string::npos) fail("undefined entry kernel_entry");
  std::vector<Section> sections{{".text", 1, 0, 0, "linked " + digest(object)}};
  add_symbols(sections, false, {"kernel_entry"});
  write_elf(request.output, 2, kNoMachine, sections);
  return 0;
}

int aarch64(Request request) {
  for (const char* flag : {"-std=c++23", "-O2", "-fPIC", "-shared", "-pthread", "-fno-gnu-unique", "-w",
                           "-ffile-prefix-map=t/=", "-ffile-prefix-map=w/=", "-Wl,--build-id=sha1"})
    request.need(flag);
  finish(request);
  const Reader reader = read_sources(request);
  std::string note;
  put(note, uint32_t{4}), put(note, uint32_t{20}), put(note, uint32_t{3});
  note += std::string("GNU\0", 4) + digest(reader.text());
  std::vector<Section> sections{{".text", 1, 0, 0, "code of the stand-in"}};
  add_symbols(sections, true, {"pypto_abi_version", "pypto_parameter_count", "pypto_run"});
  sections.push_back({".note.gnu.build-id", 7, 0, 0, note});
  write_elf(request.output, 3, kAArch64, sections);
  return 0;
}

int main(int argc, char** argv) {
  std::string name = argv[0];
  name = name.substr(name.rfind('/') + 1);
  const std::map<std::string, int (*)(Request)> programs{{"ccec", ccec},
                                                         {"ld.lld", ld_lld},
                                                         {"aarch64-target-linux-gnu-gcc", aarch64},
                                                         {"aarch64-target-linux-gnu-g++", aarch64}};
  const auto found = programs.find(name);
  if (found == programs.end()) fail("no stand-in is called '" + name + "'");
  return found->second(parse(argc, argv));
}

#include "base/file.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <millrace/error.h>

#include "base/mapped_file.h"
#include "support/disk_calls.h"
#include "support/temp_folder.h"

using namespace millrace;
namespace fs = std::filesystem;

namespace {

int entries(const fs::path& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("files are written in missing folders, with their mode, and read back by copy and by map") {
  testing::TempFolder folder;
  const fs::path path = folder / "a/b/c.bin";
  const std::string text(300'000, 'x');
  write_file(path, text, 0444);
  CHECK(read_text(path) == text);
  CHECK(read_file(path).size() == text.size());
  const MappedFile map(path);
  CHECK(std::string(map.bytes().begin(), map.bytes().end()) == text);
  struct stat status {};
  CHECK(stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0444);
  CHECK(entries(path.parent_path()) == 1);
}

TEST_CASE("what an earlier call failed with says nothing of a file that is read or written") {
  testing::TempFolder folder;
  const std::string text(300'000, 'x');
  errno = EINTR;
  write_file(folder / "a", text);
  errno = EINTR;
  CHECK(read_text(folder / "a") == text);
  errno = EINTR;
  CHECK(MappedFile(folder / "a").bytes().size() == text.size());
}

TEST_CASE("an empty file reads and maps as nothing") {
  testing::TempFolder folder;
  write_file(folder / "empty", "");
  CHECK(read_file(folder / "empty").empty());
  CHECK(MappedFile(folder / "empty").bytes().empty());
}

TEST_CASE("missing files and folders are IoErrors that name the path") {
  testing::TempFolder folder;
  CHECK_THROWS_WITH_AS(read_file(folder / "none"), doctest::Contains("none: no such file"), IoError);
  CHECK_THROWS_WITH_AS(read_file(folder.path()), doctest::Contains("is a folder"), IoError);
  CHECK_THROWS_AS(MappedFile(folder / "none"), IoError);
  CHECK_THROWS_AS(write_file(folder.path(), "x"), IoError);  // a folder stands in the way
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("a pipe that nobody writes to is refused, not waited for") {
  const testing::TempFolder folder;
  const fs::path pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(read_file(pipe), doctest::Contains("not a regular file"), IoError);
  CHECK_THROWS_WITH_AS(MappedFile{pipe}, doctest::Contains("not a regular file"), IoError);
}

TEST_CASE("without commit the old content stays and no temporary file is left") {
  testing::TempFolder folder;
  write_file(folder / "state", "old");
  {
    AtomicFile file(folder / "state");
    file.write("new");
  }
  CHECK(read_text(folder / "state") == "old");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("what is being written has no name yet: a process that is killed leaves nothing") {
  testing::TempFolder folder;
  write_file(folder / "old", "old");
  if (const int probe = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600); probe < 0) {
    MESSAGE("skipped: the file system of temporary files has none without a name");
    return;
  } else {
    ::close(probe);
  }
  AtomicFile replaced(folder / "old"), made(folder / "made", 0640);
  const std::string text(3 << 20, 'n');
  replaced.write(text);
  made.write(text);
  CHECK(entries(folder.path()) == 1);
  replaced.commit();
  made.commit();
  CHECK(entries(folder.path()) == 2);
  CHECK(read_text(folder / "old") == text);
  CHECK(read_text(folder / "made") == text);
  CHECK((fs::status(folder / "made").permissions() & fs::perms::mask) == fs::perms(0640));
}

TEST_CASE("bytes are on the disk before they have their name, and the name before commit returns") {
  testing::TempFolder folder;
  const fs::path whole = fs::canonical(folder.path());
  for (const char* text : {"new", "and replaced"}) {
    const auto calls = testing::disk_calls([&] { write_file(whole / "state", text); });
    CAPTURE(text);
    REQUIRE(calls.size() >= 3);
    CHECK(calls.front() == "flush file");
    CHECK(calls.back() == "flush folder " + whole.string());
    for (size_t i = 1; i + 1 < calls.size(); ++i) CHECK((calls[i] == "link" || calls[i] == "rename"));
  }
}

TEST_CASE("a write that fails half way leaves the old file intact and says so") {
  testing::TempFolder folder;
  write_file(folder / "state", "old");
  // A limit on the file size makes write() fail like a disk does.
  struct rlimit before {};
  getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit small = before;
  small.rlim_cur = 100'000;
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  CHECK_THROWS_WITH_AS(write_file(folder / "state", std::string(1'000'000, 'n')),
                       doctest::Contains("The old file is unchanged"), IoError);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_DFL);
  CHECK(read_text(folder / "state") == "old");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a full disk is called a full disk and leaves the old file") {
  testing::TempFolder folder;
  fs::create_directory(folder / "disk");
  if (mount("none", (folder / "disk").c_str(), "tmpfs", 0, "size=64k") != 0) {
    MESSAGE("skipped: mounting a small tmpfs needs root");
    return;
  }
  write_file(folder / "disk/state", "old");
  CHECK_THROWS_WITH_AS(write_file(folder / "disk/state", std::string(1'000'000, 'n')),
                       doctest::Contains("disk full"), IoError);
  CHECK(read_text(folder / "disk/state") == "old");
  CHECK(entries(folder / "disk") == 1);
  umount((folder / "disk").c_str());
}

TEST_CASE("a link stays, and what it leads to is replaced, be it there or not") {
  testing::TempFolder folder;
  fs::create_directory(folder / "there");
  write_file(folder / "there/file", "old");
  fs::create_symlink("there/file", folder / "near");
  fs::create_symlink(folder / "near", folder / "far");
  fs::create_symlink("there/new", folder / "dangling");
  write_file(folder / "far", "new");
  write_file(folder / "dangling", "made");
  CHECK(read_text(folder / "there/file") == "new");
  CHECK(read_text(folder / "there/new") == "made");
  for (const char* link : {"near", "far", "dangling"}) CHECK(fs::is_symlink(folder / link));
  fs::create_symlink("circle", folder / "circle");
  CHECK_THROWS_WITH_AS(write_file(folder / "circle", "x"), doctest::Contains("circle: cannot write it"),
                       IoError);
  CHECK(fs::is_symlink(folder / "circle"));
}

TEST_CASE("a write that a signal breaks off in the middle goes on behind what was written") {
  testing::TempFolder folder;
  const fs::path pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  struct sigaction none {
  }, before{};
  none.sa_handler = [](int) {};
  REQUIRE(::sigaction(SIGUSR2, &none, &before) == 0);
  std::string text;
  while (text.size() < 700'000) text += std::to_string(text.size()) + " ";
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  std::thread writer([&] { write_file(pipe, text); });
  std::string got;
  char part[10 * 4096];  // whole pages: room that can be filled again
  while (got.size() < text.size()) {
    // It waits for room, with part of what it writes in the pipe: a signal, and that part is all.
    constexpr size_t room = 1 << 16;
    for (int waiting = 0; waiting < static_cast<int>(std::min(room, text.size() - got.size()));)
      REQUIRE(::ioctl(reader, FIONREAD, &waiting) == 0);
    if (text.size() - got.size() > room) ::pthread_kill(writer.native_handle(), SIGUSR2);
    const ssize_t size = ::read(reader, part, sizeof part);
    REQUIRE(size > 0);
    got.append(part, static_cast<size_t>(size));
  }
  ::close(reader);
  writer.join();
  ::sigaction(SIGUSR2, &before, nullptr);
  const bool whole = got == text;
  CHECK(whole);
}

TEST_CASE("devices and pipes are written to, sockets and folders refused: nothing takes their place") {
  testing::TempFolder folder;
  write_file("/dev/null", "gone");
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_THROWS_WITH_AS(write_file("/dev/full", "x"),
                       doctest::Contains("/dev/full: cannot write it: disk full"), IoError);
  CHECK(fs::is_character_file("/dev/full"));
  fs::create_symlink("/dev/null", folder / "null");
  write_file(folder / "null", "gone");
  CHECK(fs::is_symlink(folder / "null"));

  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const int reader = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_file(folder / "pipe", "through");
  char got[16] = {};
  CHECK(::read(reader, got, sizeof got) == 7);
  CHECK(std::string(got) == "through");
  ::close(reader);
  CHECK(fs::is_fifo(folder / "pipe"));

  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder / "socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK_THROWS_WITH_AS(write_file(folder / "socket", "x"), doctest::Contains("is a socket"), IoError);
  CHECK(fs::is_socket(folder / "socket"));
  ::close(socket);
  CHECK_THROWS_WITH_AS(write_file(folder.path(), "x"), doctest::Contains("is a folder"), IoError);
}

TEST_CASE("a pipe that comes to stand where a file is being written stays") {
  testing::TempFolder folder;
  AtomicFile file(folder / "out");
  file.write("x");
  REQUIRE(::mkfifo((folder / "out").c_str(), 0600) == 0);
  CHECK_THROWS_AS(file.commit(), IoError);
  CHECK(fs::is_fifo(folder / "out"));
}

TEST_CASE("a file without a name can be written and read, and leaves nothing") {
  const testing::TempFolder folder;
  const int file = open_nameless(folder.path());
  CHECK(std::filesystem::is_empty(folder.path()));
  REQUIRE(::write(file, "abc", 3) == 3);
  char back[3] = {};
  CHECK(::pread(file, back, 3, 0) == 3);
  CHECK(std::string(back, 3) == "abc");
  ::close(file);
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK_THROWS_WITH_AS((void)open_nameless(folder / "none"),
                       doctest::Contains("none: cannot create a temporary file in it"), IoError);
}

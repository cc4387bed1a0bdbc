// What this machine's CPU is and can do. MILLRACE_CPU=avx2, avx512 or avx512_bf16 caps the instructions that
// are used, for tests of what smaller CPUs run, and for comparisons with them.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

/// The CPU's model as the kernel gives it, with the cap behind it if there is one: what was measured, chosen
/// or compiled under a cap holds for nothing else.
const std::string& cpu_name();

/// The value of MILLRACE_CPU; empty: no cap. Throws InputError for another word.
const std::string& cpu_cap();

/// Whether the cap allows a set of instructions, by the kernel's name for it or by LLVM's ("avx512_bf16",
/// "avx512bf16").
bool cpu_cap_allows(std::string_view name);

/// Whether /proc/cpuinfo lists the flag ("avx512f", "avx512_bf16", "amx_bf16" …) and the cap allows it.
bool cpu_has(std::string_view flag);

/// Whether there are AMX's tiles that the system lets this process use: Linux gives it their memory only when
/// it asks (Documentation/arch/x86/xstate.rst). Which types they multiply, cpu_has() says ("amx_bf16").
bool tiles_allowed();

}  // namespace millrace

// Lets go of the pages of the program that only its start needed.
#pragma once

namespace qrm::manager {

/// Lets go of the pages of code and constants that are resident, most of which only the start has
/// read: what is used again comes back from the page cache. Nothing while the process is traced,
/// since a debugger's breakpoints lie in them. Threads: any. Cost: a page fault for each piece of
/// code that runs next.
void GiveBackStartPages();

}  // namespace qrm::manager

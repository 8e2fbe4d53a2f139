// SPDX-License-Identifier: Apache-2.0
// Standard output has taken what was printed, or the reason why not.
#pragma once

// 0, else the errno of the first time that it has not arrived. A later flush would find another
// one, or succeed with nothing left to write.
int cli_flush(void);

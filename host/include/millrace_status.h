// SPDX-License-Identifier: Apache-2.0
// Status codes of the Millrace C API. The command line's exit status is derived from them
// (docs/use/cli.md): 0 success, 2 usage, 3 input, 4 device, 5 result differs, 130 interrupted.
#ifndef MILLRACE_STATUS_H
#define MILLRACE_STATUS_H

enum mr_status {
    MR_OK = 0,
    MR_ERR_USAGE = -1,       // the caller passed an argument outside its documented range
    MR_ERR_IO = -2,          // the operating system refused a read, write or map
    MR_ERR_FORMAT = -3,      // a file or text is malformed, truncated or lies about itself
    MR_ERR_UNSUPPORTED = -4, // well-formed, but outside what this version does
    MR_ERR_MEMORY = -5,      // an allocation failed
    MR_ERR_DEVICE = -6,      // the device reported an error, hung or disappeared
    MR_ERR_FIT = -7,         // the model or request does not fit the device's configuration
    MR_ERR_DIFF = -8,        // two devices that must agree did not
    MR_ERR_INTERRUPTED = -9, // stopped by the user
};

#endif

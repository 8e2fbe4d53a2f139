#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Do the tests notice a fault? Each mutant is one changed line of the RTL, the C model or the compiler of programs, built in a
# copy of the sources; the test named beside it must be green without it and red with it. TAP on stdout.
# usage: [BUILD=build] tests/mutants/run.sh [WORD]   (from the root; WORD: only mutants with it in
# their name, or whose catcher begins with it)
#        tests/mutants/run.sh --check   (builds nothing: does each still apply, and has its catcher?)
# Catchers:
#   rtl:BENCH@VARIANT  bench of tests/rtl, Verilated again; links the mutated C numerics too
#   unit:TEST          cmocka test of tests/unit with the mutated file in place of the library's, or of the driver's
#   device:            millrace selftest of the unchanged sim:tiny against the mutated C model
#   sim                millrace selftest of a sim:tiny of the mutated RTL
#   programs           the program fuzzer (tests/programs): the unchanged C model against a sim:tiny of
#                      the mutated RTL, or of RTL made from a mutated device.def
#   programs-c         the program fuzzer with the mutated C model against the unchanged sim:tiny
#   gates              unit test clk_gate: a sim:tiny of the mutated RTL against the unchanged one
#                      without clock gates
#   tinyt              unit test train_rtl: the unchanged C model against a sim:tinyt of the mutated RTL
# A mutant that does not change its file, or does not build, has not been caught. One of a contract (mr_assert.svh)
# names the assertion that must fail: FILE.sv and the assertion's name.
set -uo pipefail
check='' only=${1:-}
[ "$only" != --check ] || check=yes only=''
build=$(realpath "${BUILD:-build}")
cxx=${SIM_CXX:-$(command -v clang++-19 || echo g++)}
cc=${CC:-gcc}
dir=$build/mutants
tree=$dir/tree
cli_libs=${CLI_LIBS:--ledit -lmicrohttpd -lhdf5_serial -lzstd -lyaml}
libs="-ljansson -lpcre2-8 -lxxhash -lzip -ldl -lpthread -lm"
cflags="-std=c17 -D_GNU_SOURCE -O1 -ffp-contract=off -Ihost -Ihost/include -I$build/gen -I. -Itests"
# A mutant that hangs is caught: it has ten times the processor's time of the test without it, and a minute, however
# long that takes. One that hangs asleep, and the test without a mutant, have so many seconds.
limit=${MUTANT_TIMEOUT:-1800}
fuzz_cases=${FUZZ_CASES:-1000}
if [ -z "$check" ]; then
    rm -rf "$tree"
    mkdir -p "$tree/build/gen" "$tree/tests/synth"
    cp -r rtl host hls sim driver Makefile "$tree/"
    cp -r tests/rtl tests/unit tests/programs tests/driver tests/tests.mk "$tree/tests/"
    cp tests/synth/dsp48e2.v "$tree/tests/synth/"
    cp -rp "$build"/gen/* "$tree/build/gen/"
    mkdir -p "$tree/build/rtl" && cp -p "$build/rtl/runtime.a" "$tree/build/rtl/"
    # A mutant may leave a signal unused or of the wrong width: that alone must not stop its build.
    sed -i 's/ params=/ params=-Wno-fatal /' "$tree"/tests/rtl/*/bench.txt
fi
n=0 bad=0
declare -A green work

spent() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($14 + $15) / hz) }' /proc/$$/stat; } # by children

tap() { # status name
    n=$((n + 1))
    if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; bad=$((bad + 1)); fi
}

catcher() { # how a test is called in the test list
    case $1 in
    rtl:*) echo "rtl-${1#rtl:}" ;;
    unit:*) echo "unit-test_${1#unit:}" ;;
    gates) echo "unit-test_clk_gate" ;;
    tinyt) echo "unit-test_train_rtl" ;;
    programs | programs-c) echo "programs" ;;
    *) echo "selftest on sim:tiny" ;;
    esac
}

has_catcher() { # catcher
    local b=${1#*:}
    case $1 in
    rtl:*) grep -q "^${b#*@} " "tests/rtl/${b%@*}/bench.txt" ;;
    unit:*) [ -e "tests/unit/test_$b.c" ] ;;
    esac
}

# The unchanged test, once: built by the normal build (make test-mutants sees to that).
baseline() { # catcher
    case $1 in
    rtl:*) timeout "$limit" "$build/rtl/${1#rtl:}/tb" ;;
    unit:*) timeout "$limit" "$build/unit/test_${1#unit:}" ;;
    gates) timeout "$limit" "$build/unit/test_clk_gate" '*tiny' ;;
    tinyt) timeout "$limit" "$build/unit/test_train_rtl" ;;
    programs | programs-c) timeout "$limit" "$build/programs/fuzz" cases=$fuzz_cases ;;
    device: | sim) MILLRACE_SIM_DIR=$build/sim/tiny timeout "$limit" "$build/millrace" selftest --device sim:tiny ;;
    esac >"$dir/baseline.log" 2>&1
}

# Builds the test in the tree.
make_test() { # catcher file
    case $1 in
    rtl:*)
        local b=${1#rtl:}
        rm -rf "build/rtl/$b" &&
            $cc $cflags -Ibuild/gen -c -o build/num.o host/cmodel/num.c &&
            CXX=$cxx tests/rtl/build.sh "${b%@*}" "${b#*@}"
        ;;
    unit:driver_check)
        $cc $cflags -Itests/driver/kernel -w -o build/test tests/unit/test_driver_check.c driver/check.c driver/scrub.c \
            "$build/libmillrace.a" -lcmocka $libs
        ;;
    unit:*)
        $cc $cflags -w -c -o build/mutant.o "$2" &&
            $cc $cflags -w -o build/test "tests/unit/test_${1#unit:}.c" build/mutant.o \
                "$build/libmillrace.a" -lcmocka $libs
        ;;
    device:)
        $cc $cflags -w -c -o build/mutant.o "$2" &&
            $cc -o build/test "$build"/obj/host/{cli,serve,data,config}/*.o build/mutant.o "$build/libmillrace.a" \
                $libs $cli_libs
        ;;
    programs-c)
        $cc $cflags -Itests/programs -w -o build/test tests/programs/*.c "$2" "$build/libmillrace.a" $libs
        ;;
    sim | gates | programs | tinyt)
        local c=tiny
        [ "$1" != tinyt ] || c=tinyt
        make -s BUILD=build SIM_CXX="$cxx" SIM_OPT=-O1 SIM_CONFIGS=$c JOBS=1 build/sim/$c/libmillrace-sim-$c.so
        ;;
    esac
}
run_test() { # catcher
    case $1 in
    rtl:*) timeout "$limit" "build/rtl/${1#rtl:}/tb" ;;
    unit:*) cd "$OLDPWD" && timeout "$limit" "$tree/build/test" ;;
    device:) MILLRACE_SIM_DIR=$build/sim/tiny timeout "$limit" build/test selftest --device sim:tiny ;;
    gates) [ -r build/sim/tiny/libmillrace-sim-tiny.so ] && cd "$OLDPWD" && MILLRACE_SIM_DIR=$tree/build/sim/tiny timeout "$limit" "$build/unit/test_clk_gate" '*tiny' ;;
    tinyt) [ -r build/sim/tinyt/libmillrace-sim-tinyt.so ] && cd "$OLDPWD" && MILLRACE_SIM_DIR=$tree/build/sim/tinyt timeout "$limit" "$build/unit/test_train_rtl" ;;
    programs) [ -r build/sim/tiny/libmillrace-sim-tiny.so ] && MILLRACE_SIM_DIR=$tree/build/sim/tiny timeout "$limit" "$build/programs/fuzz" cases=$fuzz_cases ;;
    programs-c) MILLRACE_SIM_DIR=$build/sim/tiny timeout "$limit" build/test cases=$fuzz_cases ;;
    sim) [ -r build/sim/tiny/libmillrace-sim-tiny.so ] && MILLRACE_SIM_DIR=$tree/build/sim/tiny timeout "$limit" "$build/millrace" selftest --device sim:tiny ;;
    esac
}

mutant() { # name file sed catcher [assertion]
    local name=$1 file=$2 edit=$3 by=$4 fails=${5:-} title="mutant: $1 is caught by $(catcher "$4")" start status
    title+=${fails:+, assertion $fails}
    [[ $name == *"$only"* || $by == "$only"* ]] || return 0
    if [ -n "$check" ]; then
        sed "$edit" "$file" | cmp -s "$file" - || ! has_catcher "$by"
        tap $((!$?)) "$title: it applies, and has its test"
        return
    fi
    start=$(date +%s)
    if [ -z "${green[$by]:-}" ]; then
        work[$by]=$(spent)
        baseline "$by"
        green[$by]=$?
        work[$by]=$((10 * ($(spent) - work[$by]) + 60))
        [ "${green[$by]}" = 0 ] || tail -3 "$dir/baseline.log" | sed 's/^/# /'
    fi
    if [ "${green[$by]}" != 0 ]; then
        echo "# without the mutant the test is not green"
        tap 1 "$title"
        return
    fi
    sed "$edit" "$file" >"$tree/$file"
    if cmp -s "$file" "$tree/$file"; then
        echo "# the mutant does not apply to $file any more"
        tap 1 "$title"
        return
    fi
    if ! (cd "$tree" && make_test "$by" "$file") >"$dir/build.log" 2>&1; then
        echo "# the mutant does not build"
        tail -5 "$dir/build.log" | sed 's/^/# /'
        tap 1 "$title"
    else
        (cd "$tree" && ulimit -t "${work[$by]}" && run_test "$by") >"$dir/run.log" 2>&1
        status=$?
        [ $status = 124 ] || [ $status = 152 ] && echo "# it hangs"
        # 126, 127: the test could not be started
        [ $status != 0 ] && [ $status != 126 ] && [ $status != 127 ] &&
            { [ -z "$fails" ] || grep -q "Error: ${fails% *}:.*Assertion failed in .*: ${fails#* }$" "$dir/run.log"; }
        tap $? "$title"
        echo "# $(grep -m1 -E '^not ok|FAILED|^millrace|^# lane|Assertion|differ|logit|error' "$dir/run.log"), $(($(date +%s) - start)) s"
    fi
    cp -p "$file" "$tree/$file"
}

# ---- kernel ------------------------------------------------------------------------------------------
mutant 'kernel starts by a write of zero' rtl/kernel/mr_kernel.sv \
    's/w_addr == AP_CTRL \&\& w_data\[0\] \&\& !start_q/w_addr == AP_CTRL \&\& !start_q/' rtl:kernel@n2
mutant 'kernel forgets to clear ap_done' rtl/kernel/mr_kernel.sv \
    's/done_event || (done_q \&\& !read_ctrl)/done_event || done_q/' rtl:kernel@n2
mutant 'kernel waits for a finish that a soft reset does not give' rtl/kernel/mr_kernel.sv \
    's/(core_finish || !core_busy)/core_finish/' rtl:kernel@n2
mutant 'kernel takes the next page' rtl/kernel/mr_kernel.sv \
    "s/p == 2'd0 ? pages\[63:0\]/p == 2'd1 ? pages[63:0]/" rtl:kernel@n2
mutant 'kernel sleeps through the end of a run' rtl/kernel/mr_kernel.sv \
    's/(start_q \&\& !seen_q) || done_event;/(start_q \&\& !seen_q);/' rtl:kernel@n2
mutant 'kernel does not wake up for a read' rtl/kernel/mr_kernel.sv \
    's/ || s_axil_arvalid_i || w_valid/ || w_valid/' rtl:kernel@n2

# ---- array -------------------------------------------------------------------------------------------
mutant 'PE takes weights as unsigned' rtl/tech/mr_dot.sv \
    "s/32'(\\\$signed(w_q\\[32\\*j+8\\*b+:8\\]))/32'(w_q[32*j+8*b+:8])/" rtl:pe@portable
mutant 'PE aligns by one bit too much' rtl/tech/mr_dot_acc.sv \
    "s/>>> sh_q)/>>> (sh_q + 6'd1))/" rtl:pe@portable
mutant 'PE accumulates without the first clear' rtl/tech/mr_dot_acc.sv \
    "s/(first_i ? 48'd0 : acc_o\(\[[^]]*\]\))/acc_o\1/" rtl:pe@portable
mutant 'a folded step is a cycle short' rtl/array/mr_array_ctrl.sv \
    "s/fold_q <= LF'(FOLD - 1)/fold_q <= LF'(FOLD - 2)/" rtl:array@n1r2fold
mutant 'a folded row leaves out its last column' rtl/array/mr_array_ch.sv \
    's/assign v = v_i | \(.*\) | turns_q\[3\*R-1:2\*R\];/assign v = v_i | \1;/' rtl:array@n1r2fold
mutant 'a folded row delivers its columns backwards' rtl/array/mr_array_ch.sv \
    's/acc\[48\*(3-c)+:48\]/acc[48*c+:48]/' rtl:array@n1r2fold
mutant 'a folded column has the exponent of the first' rtl/array/mr_array_ch.sv \
    "s/wcode_i\[8\*(32'(column)+c)+:8\]/wcode_i[8*c+:8]/" rtl:array@n1r2fold
mutant 'the drain takes folded sums a cycle early' rtl/array/mr_array_drain.sv \
    's/localparam int PW = 7 \* (5 + FOLD)/localparam int PW = 7 * (FOLD > 1 ? 4 + FOLD : 6)/' rtl:array@n1r2fold
mutant 'PE in DSPs: the low half borrows from the high one' rtl/tech/mr_dot.sv \
    "s/48'h4_0001_0000/48'h4_0000_0000/" rtl:pe@dsp
mutant 'PE rounds half of a gradient up' rtl/tech/mr_dot_acc.sv \
    "s/x2\[sh\] && (x\[sh\] || /x2[sh] \&\& (1'b1 || /" rtl:pe@both
mutant 'a gradient of a column that is no number is added' rtl/array/mr_array_ch.sv \
    "s/grad_col = &code ? SW'(1023) : /grad_col = /" rtl:array@n1r2grad
mutant 'the flag of a number that is none comes a step early' rtl/array/mr_array_ch.sv \
    's/step_q <= {nan_q\[2\], /step_q <= {nan_q[1], /' rtl:array@n1r2grad
mutant 'a gradient has the unit of the step behind it' rtl/array/mr_array_ch.sv \
    's/row_term(grad1, g1, /row_term(grad1, g_i, /' rtl:array@n1r2grad
mutant 'flags of a gradient go on to the next sum' rtl/array/mr_array_ch.sv \
    "s/(first_i ? 2'd0 : sum_q) | step_q/sum_q | step_q/" rtl:array@n1r2grad
mutant 'PE in DSPs does not clear its sum' rtl/tech/mr_dot_sum.sv \
    "s/!first_i, 5'b0/1'b1, 5'b0/" rtl:pe@dsp

# ---- training ------------------------------------------------------------------------------------------
mutant 'GRAD clamps to the most negative number' rtl/train/mr_grad_out.sv \
    "s/minus ? -most : most/minus ? -most - 32'(size > 48'h7FFFFFFF) : most/" rtl:grad_out@n8
mutant 'GRAD takes the limit itself as too large' rtl/train/mr_grad_out.sv \
    "s/if (abs_q\[48\*i+:48\] > {/if (abs_q[48*i+:48] >= {/" rtl:grad_out@n8
mutant 'GRAD writes rows that it does not have' rtl/train/mr_grad_out.sv \
    "s/assign zero = .*/assign zero = 1'b0;/" rtl:grad_out@n8
mutant 'GRAD forgets the record that it adds to' rtl/train/mr_grad_out.sv \
    's/begin_q ? NEW : OLD/NEW/' rtl:grad_out@n8
mutant 'GRAD overwrites a row that has not been read' rtl/train/mr_grad_out.sv \
    "s/rows_read > 16'(row_q)/rows_read >= 16'(row_q)/" rtl:grad_out@n1
mutant 'LOAD_ACT goes on in the header of the groups before' rtl/train/mr_load_act.sv \
    "s/if (in_head_q == 4'd15) head_q <= /if (in_head_q == 4'd14) head_q <= /" rtl:load_act@n1
mutant 'LOAD_ACT takes blocks before the first one' rtl/train/mr_load_act.sv \
    "s/assign drop    = .*/assign drop    = 1'b0;/" rtl:load_act@n1
mutant 'LOAD_ACT lets a matrix end one beat behind its window' rtl/train/mr_load_act.sv \
    's/assign bad         = end_q > {7/assign bad         = end_q - 39'"'"'d1 > {7/' rtl:load_act@n1
mutant 'a row maximum grows where it is given' rtl/array/mr_act_mem.sv \
    's/w_first_q || (SET != 0 ? w_set_q : 1.b0)/w_first_q/' rtl:act_mem@r4
mutant 'STREAM_STASH finds a group one header too early' rtl/stream/mr_tiles_at.sv \
    "s/n_q       <= group_i\[19:4\]/n_q       <= group_i[19:4] - 16'(group_i[3:0] == 4'd0)/" rtl:stash_jobs@n4
mutant 'STREAM_STASH reads whole sections' rtl/stream/mr_stash_pkg.sv \
    "s/{13'd0, k\[3:0\], 1'b0} + 18'd3/18'd33/" rtl:stash_jobs@n4
mutant 'a part begins with the codes of its section' rtl/stream/mr_splitter.sv \
    "s/row_at_o   = first_q ? first_blk_q : '0/row_at_o   = '0/" rtl:stream@part

mutant 'a turned block has the code of the set that comes next' rtl/train/mr_turn.sv \
    's/code0_q    <= code_q\[read_q\]/code0_q    <= code_q[w_half_q]/' rtl:turn@n1
mutant 'rows behind the last of a turned set are those of the set before' rtl/train/mr_turn.sv \
    "s/zero0_q <= .*/zero0_q <= 1'b0;/" rtl:turn@n1
mutant 'a turned set is overwritten while it is read' rtl/train/mr_turn.sv \
    's/row_q < at_q)/row_q <= at_q)/' rtl:turn@n1
mutant 'a turned set that nobody takes goes on' rtl/train/mr_turn.sv \
    "s/assign go    = .*/assign go    = 1'b1;/" rtl:turn@n1
mutant 'maxima of the stash always begin anew' rtl/train/mr_stash_put.sv \
    's/if (!fresh_q\[l\]) due/if (1'"'"'b0) due/' rtl:stash_put@n1
mutant 'maxima of the stash never begin anew' rtl/train/mr_stash_put.sv \
    's/lanes_q\[9\*l+8\] ? lanes_q\[9\*l+:8\] ://' rtl:stash_put@n1
mutant 'maxima of the stash begin anew with each block' rtl/train/mr_stash_put.sv \
    's/if (mask_q\[l\] \&\& used\[l\]) begin/if (mask_q[l] \&\& 1'"'"'b0) begin/' rtl:stash_put@n1
mutant 'maxima of the stash go on in the next header' rtl/train/mr_stash_put.sv \
    's/if (!rst_ni || head_end) begin/if (!rst_ni) begin/' rtl:stash_put@n4
mutant 'elements of the stash are written whole' rtl/train/mr_stash_put.sv \
    "s/(state_q == HEAD) ? head_used_q : elems_strb/(state_q == HEAD) ? head_used_q : '1/" rtl:stash_put@n1
mutant 'a header of the stash is written whole' rtl/train/mr_stash_put.sv \
    "s/(state_q == HEAD) ? head_used_q : elems_strb/(state_q == HEAD) ? '1 : elems_strb/" rtl:stash_put@n1
mutant 'elements of the stash behind the first section lie without its codes' rtl/train/mr_stash_put.sv \
    "s/mr_stash_pkg::sections(kblock_q\[15:4\])/18'(kblock_q[15:4]) << 5/" rtl:stash_put@n1
mutant 'a matrix of the stash may end one beat behind its window' rtl/train/mr_stash_put.sv \
    "s/(over_q > {7'd0, s_limit_i})/(over_q - 39'd1 > {7'd0, s_limit_i})/" rtl:stash_put@n1
mutant 'the stash is done before its writes are acknowledged' rtl/train/mr_stash_put.sv \
    "s/default: if (jobs_q == '0) begin/default: begin/" rtl:stash_put@n1
mutant 'a header of the stash is written behind the last set alone' rtl/train/mr_stash_put.sv \
    "s/flush_q  <= in_flush_i/flush_q  <= in_last_i/" rtl:stash_put@n1
mutant 'a header of turned columns is written with the sixteenth group of the command' rtl/train/mr_turned.sv \
    "s/group\[3:0\] == '1/t_group[3:0] == '1/" rtl:row_copy@n8
mutant 'FETCH_ROWS reads a row table' rtl/vector/mr_rows.sv \
    "s/<= fetch_q ? '0 : (32/<= (32/" rtl:rows@v4train
mutant 'FETCH_ROWS forgets which rows have logits' rtl/vector/mr_rows.sv \
    's/cmd_ready_o && !fetch) begin/cmd_ready_o) begin/' rtl:rows@v4train
mutant 'FETCH_ROWS adds the word of the row memory that comes next' rtl/vector/mr_rows.sv \
    's/assign res_raddr_o = res_addr_q;/assign res_raddr_o = res_addr_q + 1'"'"'b1;/' rtl:rows@v4train
mutant "an exponent of FETCH_ROWS with ADD is the window's" rtl/vector/mr_rows.sv \
    's/late_word_q <= res_wdata_o/late_word_q <= wdata_q/' rtl:rows@v4train
mutant 'MATMUL with SET adds' rtl/vector/mr_epi_res.sv \
    "s/(TRAIN != 0 \&\& set_i) ? {V{32'h8000_0000}} : word_q/word_q/" rtl:epilogue@n2train
mutant "a result that is set adds to +0, so that -0 is lost" rtl/vector/mr_epi_res.sv \
    "s/32'h8000_0000/32'h0000_0000/" rtl:epilogue@n2train
mutant 'MATMUL with ROW takes the row memory of the command that comes next' rtl/vector/mr_epi_take.sv \
    's/if (take_o \&\& !staged) {second_o, set_o}/{second_o, set_o}/' rtl:epilogue@n2train
mutant 'MATMUL with TURNED is done before the stash has its columns' rtl/train/mr_train_done.sv \
    's/assign ok_o = .*/assign ok_o = \&ok[2:1];/' rtl:epilogue@n2train
mutant 'a MATMUL is done with what was stored of the one before' rtl/train/mr_train_done.sv \
    's/ \&\& !next_q//' rtl:epilogue@n2train
mutant 'an address that was reported is reported again' rtl/train/mr_train_done.sv \
    "s/!rst_ni || report ? '0/!rst_ni ? '0/" rtl:epilogue@n2train
mutant 'mr_turned gives its last place away twice' rtl/train/mr_turned.sv \
    "s/!used_q\[6\] && (.*));/!used_q[6]);/" rtl:row_copy@n1
mutant 'MATMUL with TURNED keeps to itself that the stash has no room' rtl/vector/mr_epi_cmds.sv \
    "s/|| side_bad_i != '0/|| side_bad_i[1]/" rtl:epilogue@n2train
mutant 'a beat for mr_turn is taken where it has no room' rtl/vector/mr_epi_take.sv \
    "s/(!c_turned_i || room_i\[0\])/1'b1/" rtl:epilogue@n2train
mutant 'results with another destination go to the stash too' rtl/vector/mr_epilogue.sv \
    's/v\[K_DST\] \&\& turned\[d_idx\]/v[K_DST] \&\& |turned/' rtl:epilogue@n2train
mutant 'a block for mr_tiles is sent where it has no room' rtl/vector/mr_epi_stage.sv \
    's/ \&\& (!u_tiles_i || t_room_i)//' rtl:epilogue@n2train
mutant 'tiles of a command that goes nowhere are those of the next one' rtl/train/mr_tiles.sv \
    "s/if (set_go || state_q == IDLE) mask_q/if (set_go) mask_q/" rtl:tiles@n4
mutant 'tiles of the next command are taken early' rtl/train/mr_tiles.sv \
    's/(set_go \&\& !command_end)/set_go/' rtl:tiles@n1
mutant 'tiles: maxima grow where block 0 is written' rtl/train/mr_tiles.sv \
    "s/{V{block_q == '0}}/{V{1'b0}}/" rtl:tiles@n1
mutant 'tiles: all blocks are of the first matrix' rtl/train/mr_tiles.sv \
    's/if (matrix_q\[0\]) at_q <= at_q + part_q;//' rtl:tiles@n1
mutant 'tiles: a header is written with the command alone' rtl/train/mr_tiles.sv \
    's/matrix_end || command_end || under_next/matrix_end || command_end/' rtl:tiles@n1
mutant 'tiles: blocks of other commands are written too' rtl/vector/mr_epilogue.sv \
    's/q_ack_i \&\& f_tiles \&\& !lo_q/q_ack_i \&\& !lo_q/' tinyt
mutant "a row's NaN is the next row's too" rtl/train/mr_row_alu.sv \
    "s/if (state_q == POS) nan_q <= 1'b0;/if (start) nan_q <= 1'b0;/" rtl:row_alu@n1
mutant 'a work begins with words of the one before' rtl/train/mr_row_alu.sv \
    's/if (start) pass_q <= mr_row_pkg::GAIN;/if (start) pass_q <= mr_row_pkg::DS;/' rtl:row_alu@n1
mutant 'a word of a work is read while another has the memory' rtl/train/mr_row_alu.sv \
    "s/res_ren_o\[0\] \&\& (need \& ~res_grant_i) == 2'd0/res_ren_o[0] \&\& res_grant_i[0]/" rtl:row_alu@n1
mutant 'a work is done before its words are written' rtl/train/mr_row_alu.sv \
    's/ \&\& (!last_row_q || empty);/;/' rtl:row_alu@n1
mutant 'more words of a work than there is room for' rtl/train/mr_row_alu.sv \
    "s/held_q != 5'(FIFO)/held_q != 5'(FIFO + 4)/" rtl:row_alu@n1
mutant 'softmax sees one column more' rtl/train/mr_row_alu.sv \
    "s/'0 : own_q - row_rdata_i;/'0 : own_q - row_rdata_i - 16'd1;/" rtl:row_alu@n1
mutant 'long sums of a work lose what is below' rtl/train/mr_row_alu.sv \
    "s/prod\[17\] || prod\[16:0\] != '0}/prod[17]}/" rtl:row_alu@n8
mutant "a work's wide sums are taken for short ones" rtl/train/mr_row_alu.sv \
    's/{18{prod\[63\]}};/{18{prod[63]}} \&\& prod[62];/' rtl:row_alu@n8
mutant 'the gains do not count for the unit' rtl/train/mr_row_alu.sv \
    "s/ + 11'({3'd0, top_g}) - 11'd275/ - 11'd148/" rtl:row_alu@n1
mutant 'LayerNorm backwards takes the sum of another pass' rtl/train/mr_row_lanes.sv \
    's/v_q \& {LAST{!clear_i}}/v_q/' rtl:row_alu@n1
mutant 'a normalised value of 2^9 is a number' rtl/train/mr_row_lanes.sv \
    "s/mul_e >= 8'd136/mul_e >= 8'd137/" rtl:row_alu@n1
mutant 'integers of a work are cut off' rtl/train/mr_row_lanes.sv \
    "s/x\[1\] \&\& (x\[2\] || x\[0\])/1'b0/" rtl:row_alu@n1
mutant 'probabilities of columns that are not seen count' rtl/train/mr_row_lanes.sv \
    's/ \& {16{live_p_q\[l\]}}//' rtl:row_alu@n1
mutant 'negative scores are in reverse order' rtl/train/mr_row_max.sv \
    's/key = x\[31\] ? ~x :/key = x[31] ? {1'"'"'b0, x[30:0]} :/' rtl:row_alu@n1
mutant 'a sum of lanes is of the word before' rtl/train/mr_row_sum.sv \
    "s/else if (v_q\[LOG-1\]) sum_o/else if (valid_i) sum_o/" rtl:row_alu@n1
mutant 'COPY turns the rows of the memory below each other' rtl/train/mr_row_copy.sv \
    "s/at_q + (to_act ? RESW'(1) : RESW'(ROW))/at_q + RESW'(1)/" rtl:row_copy@n1
mutant 'COPY takes a word that another reader has' rtl/train/mr_row_copy.sv \
    's/res_ren_o \&\& res_grant_i;/res_ren_o;/' rtl:row_copy@n1
mutant 'COPY is done before activation memory is' rtl/train/mr_row_copy.sv \
    "s/if (!turned_q \&\& pending_q == '0) begin/if (!turned_q) begin/" rtl:row_copy@n1
mutant 'COPY is done before the stash is' rtl/train/mr_row_copy.sv \
    "s/if (!turned_q \&\& pending_q == '0) begin/if (pending_q == '0) begin/" rtl:row_copy@n1
mutant 'COPY: maxima begin anew from the first column on' rtl/train/mr_row_copy.sv \
    's/begin_q\[32\] ? 17.d0 : {begin_q\[31:16\] != .0, begin_q\[15:0\]}/17'"'"'d0/' rtl:row_copy@n1
mutant 'COPY: maxima begin anew for whole groups' rtl/train/mr_turned.sv \
    "s/{V{1'b1}} << c_begin\[LV-1:0\]/{V{1'b1}}/" rtl:row_copy@n1
mutant 'COPY reads the first row memory' rtl/train/mr_row_copy.sv \
    's/res_second_o <= cmd_i\[mr_pkg::MOVE_ROWS_SRC_LSB\]/res_second_o <= 1'"'"'b0/' rtl:row_copy@n1
mutant 'COPY reads where the store of the first memory does' rtl/vector/mr_vector.sv \
    's/!(kv_want_i \&\& !kv_second_i)}/1'"'"'b1}/' tinyt
mutant 'COPY reads where the store of the second memory does' rtl/vector/mr_vector.sv \
    's/{!(kv_want_i \&\& kv_second_i)/{1'"'"'b1/' tinyt
mutant 'a window is as long as that of the command before' rtl/control/mr_legal.sv \
    's/ahead_of(cmd_i, run)/ahead_of(c_q, run)/' tinyt
mutant 'a GRAD is taken while another one works' rtl/array/mr_matmul.sv \
    's/= is_grad ? !busy_i :/= is_grad ? 1'"'"'b1 :/' tinyt
mutant 'a stream behind a STREAM_STASH comes before it' rtl/control/mr_stream_ctl.sv \
    's/!b_valid_q && !st_new && !st_busy/!b_valid_q \&\& !st_busy/' tinyt
mutant "COPY takes the store's word away" rtl/vector/mr_vector.sv \
    's/assign kv_res_rdata_o   = kv_read_q ? kv_word : kv_word_q;/assign kv_res_rdata_o = kv_word;/' tinyt
mutant "LAYERNORM counts the blocks of a COPY" rtl/vector/mr_vector.sv \
    's/assign ln_ack           = ln_ack_i \&\& !mv_on_i/assign ln_ack           = ln_ack_i/' tinyt
mutant "turned columns begin at the matrix' first" rtl/train/mr_turned.sv \
    's/c_first + {/{/' tinyt
mutant "turned blocks begin at the matrix' first" rtl/train/mr_turned.sv \
    "s/({5'd0, c_at} + {/({/" tinyt
mutant 'FETCH_ROWS fills both row memories' rtl/vector/mr_vector.sv \
    's/(ld_res_we && second)/(ld_res_we)/' tinyt
mutant 'rows of the second memory have exponents' rtl/vector/mr_vector.sv \
    's/assign rexp_we_o = ld_rexp_we && !second/assign rexp_we_o = ld_rexp_we/' tinyt
mutant 'LAYERNORM keeps all rows in the place of the first' rtl/vector/mr_layernorm.sv \
    "s/ base_q <= base_q + RES_AW'(ROW);/ base_q <= base_q;/" rtl:layernorm@v16
mutant 'what LAYERNORM writes back is a sum of FETCH_ROWS' rtl/vector/mr_rows.sv \
    "s/if (back_we_i) add_q <= 1'b0;/if (!cmd_ready_o) add_q <= 1'b0;/" rtl:rows@v64train
mutant 'what LAYERNORM keeps goes back, too' rtl/vector/mr_vector.sv \
    's/ln_keep_we \&\& ln_back_q/ln_keep_we \&\& (ln_back_q || ln_keep_we)/' tinyt
mutant 'what LAYERNORM writes back has the exponent of its last word' rtl/vector/mr_rows.sv \
    's/we_first_q <= back_first_i;/we_first_q <= back_last_i || back_first_i;/' rtl:rows@v64train
mutant 'LAYERNORM keeps what it need not' rtl/vector/mr_layernorm.sv \
    's/keep_we_o <= fetch \&\& keep_q/keep_we_o <= fetch/' rtl:layernorm@v16
mutant 'LAYERNORM keeps words where FETCH_ROWS ended' rtl/vector/mr_vector.sv \
    's/ : keep_we_q ? keep_waddr_q :/ :/' tinyt
mutant "LAYERNORM's KEEP is not looked at" rtl/vector/mr_vector.sv \
    's/train_i \&\& cmd_i\[mr_pkg::LAYERNORM_KEEP_LSB\]/train_i/' tinyt
mutant "LAYERNORM's KEEP counts in a run without training" rtl/vector/mr_vector.sv \
    's/TRAIN != 0 \&\& train_i \&\& cmd_i/TRAIN != 0 \&\& cmd_i/' tinyt
mutant "ATTEND's KEEP counts in a run without training" rtl/attention/mr_kv.sv \
    's/TRAIN != 0 \&\& train_i \&\& at_cmd_i/TRAIN != 0 \&\& at_cmd_i/' tinyt
mutant 'ATTEND keeps rows without a gap' rtl/attention/mr_attn_out.sv \
    "s/ at_q     <= row_at_q + RESW'(ROW);/ at_q     <= at_q + 1'b1;/" rtl:attn@n2train
mutant 'ATTEND keeps each group of heads as if it were the first' rtl/attention/mr_attn_out.sv \
    "s/ + (RESW'(cfg_word0_i) << \$clog2(SUBS))//" rtl:attn@n2train
mutant 'ATTEND keeps a beat as long as the quantiser waits' rtl/attention/mr_attn_out.sv \
    's/keep_we_o <= q_valid \&\& q_ready \&\& keep_q/keep_we_o <= q_valid \&\& keep_q/' rtl:attn@n2train
mutant 'what ATTEND keeps goes where LAYERNORM kept last' rtl/vector/mr_vector.sv \
    's/keep_waddr_q <= ln_we ? ln_keep_waddr : at_keep_waddr_i/keep_waddr_q <= ln_keep_waddr/' tinyt
mutant 'the exact GELU is gelu_new' rtl/fp/mr_vgelu.sv \
    "s/rom\\[{exact_q, /rom[{1'b0, /" rtl:fp@l4
mutant 'relu is gelu_new' rtl/fp/mr_vgelu.sv \
    "s/relu_q\\[3\\] ? 22'd0 : //" rtl:fp@l4
mutant 'relu is that of the beat behind' rtl/fp/mr_vgelu.sv \
    's/relu_q\[3\] ?/relu_q[2] ?/' rtl:fp@l4
mutant 'a function is that of the beat before' rtl/vector/mr_epi_lanes.sv \
    's/\.fn_i(fn_q\[2\*K_GELU-1-:2\])/.fn_i(fn_q[2*K_GELU-3-:2])/' rtl:epilogue@n1
mutant 'KEEP_SLOPE: the function of the beat behind' rtl/vector/mr_epi_lanes.sv \
    's/x_fn_o    = fn_q\[2\*K_GELU-1-:2\]/x_fn_o    = fn_q[2*K_GELU-3-:2]/' rtl:epilogue@n2train
mutant 'slopes: of the exact GELU as of gelu_new' rtl/fp/mr_vslope.sv \
    "s/rom\\[{exact_q, /rom[{1'b0, /" rtl:slopes@n1
mutant 'slopes: of relu at 0 it is 1' rtl/fp/mr_vslope.sv \
    's/ || (relu \&\& x_i\[32\*l+23+:8\] == 8.d0)//' rtl:slopes@n1
mutant 'slopes: of relu below 5 as of gelu_new' rtl/fp/mr_vslope.sv \
    's/relu || x_i/x_i/' rtl:slopes@n1
mutant 'slopes: from 5 on as at 0' rtl/fp/mr_vslope.sv \
    "s/kind4_q\[1\] ? 16'd0 : //" rtl:slopes@n1
mutant 'slopes: cut off, not rounded' rtl/fp/mr_vslope.sv \
    "s/ + 21'sd32//" rtl:slopes@n1
mutant 'slopes: the factor of a NaN is a number' rtl/train/mr_slopes.sv \
    's/nan_q ? mr_fp_pkg::QNAN : //' rtl:slopes@n1
mutant 'slopes: the next command begins before the last one is written' rtl/train/mr_slopes.sv \
    's/state_q <= keep_q ? S_ACK : S_NEXT/state_q <= S_NEXT/' rtl:slopes@n1
mutant 'slopes: a job is asked for before its data is there' rtl/train/mr_slopes.sv \
    "s/keep_q ? count >= 7'(n) : count/keep_q || count/" rtl:slopes@n1
mutant 'slopes: beats are taken without room' rtl/train/mr_slopes.sv \
    "s/room_o <= gone || .*/room_o <= 1'b1;/" rtl:slopes@n8
mutant 'slopes: beats are taken before their factors are there' rtl/train/mr_slopes.sv \
    "s/has_o  <= rd_data_valid_i || .*/has_o <= !keep_q;/" rtl:slopes@n1
mutant 'slopes: the last factors serve two beats' rtl/train/mr_slopes.sv \
    's/(has_q\[0\] \&\& !use_i)/has_q[0]/' rtl:slopes@n1
mutant 'a beat is taken where its side has no room' rtl/vector/mr_epi_place.sv \
    's/(TRAIN == 0 || side_i) \&\& //' rtl:epilogue@n2train
mutant "with TRAIN the residual's word is read a cycle early" rtl/vector/mr_epi_take.sv \
    's/rst_ni \&\& v_i\[1\] \&\& p_dst_q/rst_ni \&\& v_i[0] \&\& p_dst_q/' rtl:epilogue@n2train
mutant 'with TRAIN a command is staged if the one before is' rtl/vector/mr_epi_cmds.sv \
    's/c_staged_o <= !cfg_res_q\[c_next/c_staged_o <= !cfg_res_q[cur_q/' rtl:epilogue@n2train
mutant 'TURNED: elements are asked for once too often' rtl/train/mr_stash_put.sv \
    's/(state_q == ELEMS \&\& !(second_q \&\& channel_last))/state_q == ELEMS/' rtl:stash_put@n4
mutant "TURNED: a header's job is not waited for" rtl/train/mr_stash_put.sv \
    's/job_q   <= job_go;/job_q   <= job_go \&\& state_q != HEAD;/' rtl:stash_put@n4
mutant 'STREAM_STASH has the fields of the command behind' rtl/stream/mr_stash_jobs.sv \
    's/if (!busy_o \&\& !cmd_valid_i)/if (!busy_o)/' rtl:stash_jobs@n4
mutant 'a row of LayerNorm has the exponents of the columns that count' rtl/train/mr_row_lanes.sv \
    's/data_i(x_all_q)/data_i(x_q)/' rtl:row_alu@n1
mutant "what a MATMUL leaves aside is the command's before" rtl/train/mr_train.sv \
    's/if (side_push_i) {mm_cmd_q/if (push_q) {mm_cmd_q/' tinyt
mutant 'a beat is multiplied by the slopes of the next one' rtl/vector/mr_epi_lanes.sv \
    's/sl_pop_o  = v_q\[K_PREP-2\] \&\& s_q\[K_PREP-2\]/sl_pop_o = v_q[K_PREP-3] \&\& s_q[K_PREP-3]/' rtl:epilogue@n2train
mutant 'MATMUL is done before its slopes are written' rtl/train/mr_train_done.sv \
    's/assign ok_o = .*/assign ok_o = \&ok[1:0];/' rtl:epilogue@n2train
mutant 'KEEP_SLOPE takes beats without room for their slopes' rtl/vector/mr_epi_take.sv \
    's/ \&\& (!c_keep_i || room_i\[1\])//' rtl:epilogue@n2train
mutant 'slopes lie in the results window' rtl/millrace_core.sv \
    's/side_busy), .rows_base_i(rows_base)/side_busy), .rows_base_i(result_base)/' tinyt
mutant 'SAVE_ROWS writes where results go' rtl/attention/mr_kv.sv \
    's/save_q ? rows_base_i : result_base_i/result_base_i/' tinyt
mutant "SAVE_ROWS saves the first memory's rows alone" rtl/attention/mr_kv.sv \
    "s/second_q <= is_save && .*/second_q <= 1'b0;/" tinyt
mutant 'products of MATMUL count as those of GRAD' rtl/train/mr_train_counts.sv \
    's/rst_ni \&\& gr_in_i ? blocks_i/rst_ni ? blocks_i/' tinyt
mutant 'beats of weights count as the stash' rtl/train/mr_train_counts.sv \
    's/job_take_i \&\& job_stash_i ?/job_take_i ?/' tinyt
mutant 'cycles of LOAD_ACT count as those of MOVE_ROWS' rtl/train/mr_train_counts.sv \
    's/OP_MOVE_ROWS\[7:0\]/OP_LOAD_ACT[7:0]/' tinyt
mutant 'SAVE_ROWS does not count' rtl/train/mr_train_counts.sv \
    's/OP_SAVE_ROWS\[7:0\]/OP_STORE_KV[7:0]/' tinyt

# ---- contracts: the assertion must fail, not only the bench ------------------------------------------------
mutant 'a FIFO takes an entry more than it has room for' rtl/common/mr_fifo.sv \
    "s/assign in_ready_o .*/assign in_ready_o = 1'b1;/" rtl:common@fifo5 'mr_fifo.sv count'
mutant 'a FIFO shows the next entry although nobody took this one' rtl/common/mr_fifo.sv \
    's/assign fetch .*/assign fetch = ram_q;/' rtl:common@fifo5 'mr_fifo.sv out'
mutant 'the FIFO of weights has less room than the reader has credits' rtl/stream/mr_stream.sv \
    's/DEPTH(FIFO_DEPTH)) u_fifo/DEPTH(FIFO_DEPTH - 8)) u_fifo/' rtl:stream@small 'mr_fifo.sv in'
mutant 'the reader asks for a beat more than it has credits' rtl/stream/mr_reader.sv \
    "s/assign w_have = 32'(w_credit_q) >=/assign w_have = 32'(w_credit_q) + 32'd1 >=/" rtl:reader@small 'mr_reader.sv w_credit'
mutant 'the reader counts a credit that comes during a flush' rtl/stream/mr_reader.sv \
    '0,/!rst_ni || flush_i/s//!rst_ni || (flush_i \&\& !w_credit_i)/' rtl:reader@small 'mr_reader.sv w_credit'
mutant 'an address of a write changes while it waits' rtl/host/mr_writer.sv \
    "s/(aw_cnt_q != '0) \&\& (!awv_q || m_awready_i)/(aw_cnt_q != '0)/" rtl:writer@c2 'mr_writer.sv aw'
mutant 'every client that asks is served' rtl/host/mr_hostrd.sv \
    "s/for (int j = 0; j < i; j++) if (req_valid_i\[j\]) grant\[i\] = 1'b0;//" rtl:hostrd@c3 'mr_hostrd.sv grants'
mutant 'a request is taken while one is cut' rtl/host/mr_hostrd.sv \
    's/= !busy \&\& any \&\& !flush_i/= any \&\& !flush_i/' rtl:hostrd@c3 'mr_cut_4k.sv load'
mutant 'a block goes to several banks' rtl/array/mr_act_mem.sv \
    "s/== 16'(r))/>= 16'(r))/" rtl:act_mem@r4 'mr_act_mem.sv bank'
mutant 'a sum does not wait until the shadows are empty' rtl/array/mr_array_ctrl.sv \
    "s/(busy_q == 6'd0 \&\& room)/room/" rtl:array@n1r4 'mr_array_drain.sv shadows'
mutant 'a sum comes for which the FIFO has no room' rtl/array/mr_array_ctrl.sv \
    "s/= credit_q >= CW'(tokens) ||/= credit_q + CW'(1) >= CW'(tokens) ||/" rtl:array@n1r2 'mr_array_ctrl.sv credit'
mutant 'a block that is written twice was sent once' rtl/vector/mr_epi_cmds.sv \
    "s/two_i ? 24'(2 \* BPU) : //" rtl:epilogue@n1 'mr_epi_cmds.sv blocks'
mutant 'slopes are taken that have not come' rtl/train/mr_slopes.sv \
    "s/(has_q\[0\] \&\& !use_i)/has_q[0]/" rtl:slopes@n1 'mr_slopes.sv has'
mutant 'LOAD_ACT asks for a beat more than it has room for' rtl/train/mr_load_act.sv \
    "s/room_q >= {1'b0, want_q}/room_q + 7'd1 >= {1'b0, want_q}/" rtl:load_act@n2 'mr_load_act.sv room'
mutant 'LOAD_ACT withdraws a request' rtl/train/mr_load_act.sv \
    's/else if (rd_ready_i) req_q/else req_q/' rtl:load_act@n2 'mr_load_act.sv rd'

# ---- stream and reader ---------------------------------------------------------------------------------
mutant 'scale codes in the wrong order' rtl/stream/mr_stream.sv \
    's/scale_q\[32\*row_k_q+:32\]/scale_q[32*(row_k_q^1)+:32]/' rtl:stream@small
mutant 'FP4 nibbles swapped' rtl/stream/mr_mx_pkg.sv \
    's/fp4_int8(d\[4\*i+:4\])/fp4_int8(d[4*(i^1)+:4])/' rtl:stream@small
mutant 'reader crosses 4 KiB' rtl/common/mr_cut_4k.sv \
    "s/assign most = (room < .*/assign most = (P + 1)'(MOST);/" rtl:reader@default
mutant 'a run of a page and more ends with its first page' rtl/common/mr_cut_4k.sv \
    "s/ && (!more || left_q == LEFT'(1 << P));/;/" rtl:cut@beats
mutant 'reader loses a credit that comes back with a grant' rtl/stream/mr_reader.sv \
    "s/w_credit_q + WCW'(w_credit_i) -/w_credit_q + WCW'(w_credit_i \\&\\& !w_take) -/" rtl:reader@default
mutant 'reader: KV waits until no weight job is left' rtl/stream/mr_reader.sv \
    's/k_can = k_ok_q/k_can = !w_busy \&\& k_ok_q/' rtl:reader@default
mutant 'reader: a turn of KV has no end' rtl/stream/mr_reader.sv \
    's/(used || !k_busy || k_block_q)/(!k_busy || k_block_q)/; s/ \&\& !(sel_q \&\& used \&\& w_ok_q)//' rtl:reader@default

# ---- quantiser, LayerNorm, epilogue ----------------------------------------------------------------------
mutant 'quantiser truncates' rtl/fp/mr_fp_pkg.sv \
    "s/quant_up = x\\[24\\] && .*/quant_up = 1'b0;/" rtl:quant@v4
mutant 'quantiser clamps to 128' rtl/fp/mr_fp_pkg.sv \
    "s/ && x\\[31:25\\] != 7'd127;/;/" rtl:quant@v4
mutant 'LayerNorm variance without n' rtl/vector/mr_norm_stats.sv \
    "s/digit_q <= n_i;/digit_q <= 16'd1;/" rtl:layernorm@v4
mutant 'LayerNorm takes 1/n^2 for the mean' rtl/vector/mr_norm_stats.sv \
    's/seq_q\[3\] ? inv_n_i : inv_n2_i/seq_q[3] ? inv_n2_i : inv_n_i/' rtl:layernorm@v4
mutant 'rotary turns the other way' rtl/vector/mr_epi_lanes.sv \
    's/((l & 1) == 0), muls_y/((l \& 1) == 1), muls_y/' rtl:epilogue@n1
mutant 'epilogue drops the bias' rtl/vector/mr_epi_lanes.sv \
    "s/: bias_on_i ? dr_bias_i/: 1'b0 ? dr_bias_i/" rtl:epilogue@n1
mutant 'the epilogue changes the layout while units wait' rtl/vector/mr_epi_place.sv \
    "s/change ? drained : place_ok/change || place_ok/" rtl:epilogue@n1
mutant 'the epilogue counts a place for each word' rtl/vector/mr_epi_place.sv \
    "s/base_q <= tok_last_i/base_q <= !final_i ? now - PW'(1) : tok_last_i/" rtl:epilogue@n1
mutant 'prefix maximum forgets the past' rtl/quant/mr_prefix_max.sv \
    's/(code2_q > prior) ? code2_q : prior/code2_q/' rtl:epilogue@n1
mutant 'GELU becomes ReLU at 4.5 instead of 5' rtl/fp/mr_fp_pkg.sv \
    "s/x >= 31'h40A00000 || sh/x >= 31'h40900000 || sh/" rtl:fp@l4
mutant 'NaN has its sign set' rtl/fp/mr_fp_pkg.sv \
    "s/^  localparam logic \\[31:0\\] QNAN = 32'h7FC00000/  localparam logic [31:0] QNAN = 32'hFFC00000/" rtl:fp@l4
mutant 'add: a borrow of the mantissas moves nothing' rtl/fp/mr_fp_pkg.sv \
    "s/^ *more ^ swap};/1'b0};/" rtl:fp@l4
mutant 'multiply: the largest exponent overflows without its carry' rtl/fp/mr_fp_pkg.sv \
    "s/e\[7:0\] == 8'd254 \&\& s\[47\]/e[7:0] == 8'd254/" rtl:fp@l4
mutant 'multiply: no rounding overflows' rtl/fp/mr_fp_pkg.sv \
    "s/over = high || (!e\[9\] .*/over = high;/" rtl:fp@l4
mutant 'conversion: -1 is 0' rtl/fp/mr_fp_pkg.sv \
    's/if (none \&\& !s\[37\])/if (none)/' rtl:fp@l4

# ---- attention -----------------------------------------------------------------------------------------
mutant 'turns of attention share the first block of codes' rtl/attention/mr_attn_mac.sv \
    's/pre_sh_q <= pre_turn\[TW-1\] ?/pre_sh_q <= pre_turn[0] \&\& !pre_turn[0] ?/' rtl:attn@n1fold
mutant 'turns of attention do not begin the second dot product' rtl/attention/mr_attn_mac.sv \
    "s/assign first = turn\[TW-2:0\] == '0;/assign first = turn == '0;/" rtl:attn@n1fold
mutant 'the drain of turns reads a word twice' rtl/attention/mr_attn_mac.sv \
    "s/next_q <= dr_addr + 1'b1;/next_q <= dr_addr;/" rtl:attn@n1fold
mutant 'attention masks its own position' rtl/attention/mr_attn_prob.sv \
    's/(e_pos_q > cfg_pos_i/(e_pos_q >= cfg_pos_i/' rtl:attn@small
mutant 'attention maximum sees the future' rtl/attention/mr_attn_lane.sv \
    "s/k_key_q   <= t_masked ? 32'd0 :/k_key_q   <= 1'b0 ? 32'd0 :/" rtl:attn@small
mutant 'attention ignores the prefix maxima' rtl/attention/mr_attn_mac.sv \
    's/align = x >>> sh;/align = x;/' rtl:attn@small
mutant 'attention in DSPs does not begin a sum anew' rtl/tech/mr_dot_add.sv \
    "s/!first_i, !first_i/2'b11/" rtl:attn_lane@macdsp
mutant 'attention in DSPs adds q to the probability' rtl/tech/mr_dot_lane.sv \
    "s/alone_i ? 5'b00000/alone_i ? 5'b00100/" rtl:attn_lane@macdsp
mutant 'attention in DSPs adds up the products of PV' rtl/tech/mr_dot_lane.sv \
    "s/|| link_i;/|| 1'b1;/" rtl:attn_lane@macdsp

# ---- control ---------------------------------------------------------------------------------------------
mutant 'KV record offset without the scale beats' rtl/attention/mr_kvstore.sv \
    "s/32'(local_pos) \\* 32'(rbeats_q)/32'(local_pos) * 32'(wbeats_q)/" rtl:kvstore@n1
mutant 'semaphores are never taken' rtl/control/mr_sems.sv \
    "s/ - 6'(ones(down))//" sim
mutant 'commands do not wait for their semaphores' rtl/control/mr_queue.sv \
    "s/ && (wait_mask & ~sem_i) == '0;/;/" sim

# ---- the PCI function ------------------------------------------------------------------------------------
mutant 'copier: write strobes of an unaligned first beat' rtl/pcie/mr_copy.sv \
    "s/m_wstrb_o <= lanes(lo_q, n)/m_wstrb_o <= lanes(6'd0, n)/" rtl:pcie@n2
mutant 'every segment is skipped into, not the first' rtl/pcie/mr_pcie_exec.sv \
    "s/skip_q <= '0;/skip_q <= skip_q;/" rtl:pcie@n2
mutant 'a run goes on when its ring is disabled' rtl/pcie/mr_pcie_exec.sv \
    "s/if (!q_enabled_i \&\& !stopped_q) x_q <= X_STOP/if (1'b0) x_q <= X_STOP/" rtl:pcie@n2
mutant 'a disabled ring does not wake the executor' rtl/pcie/mr_pcie_exec.sv \
    "s/= !busy_i || (!q_enabled_i \&\& !stopped_q);/= !busy_i;/" rtl:pcie@n2
mutant 'doorbell: the entry in work counts as one ahead' rtl/pcie/mr_pcie_queues.sv \
    "s/ + 16'(job_busy_o \&\& job_queue_o == at);/;/" rtl:pcie@n2
mutant 'busy_o falls between two entries' rtl/pcie/mr_pcie_queues.sv \
    's/busy_o        = job_busy_o || job_any_o || look_q/busy_o        = job_busy_o || job_any_o/' rtl:pcie@n2
mutant 'a ring that is enabled again keeps the engine' rtl/pcie/mr_pcie_queues.sv \
    's/if (wdata_i\[0\] \&\& owner_q == at) owned_q/if (1'"'"'b0) owned_q/' rtl:pcie@n2
mutant 'scrub: an error of it goes unnoticed' rtl/pcie/mr_pcie_exec.sv \
    "s/x_rdata_i\[2:0\] == 3'b010/!x_rdata_i[0]/" rtl:pcie@n2
mutant 'interrupts go to the vector of the same number' rtl/pcie/mr_pcie_queues.sv \
    's/irq_o\[vector_q\[job_queue_o\]\]/irq_o[job_queue_o]/' rtl:pcie@n2

# ---- clock gates -----------------------------------------------------------------------------------------
mutant 'clock stops one cycle after the last activity' rtl/common/mr_clk_gate.sv \
    "s/left_q <= 8'(HOLD);/left_q <= 8'd1;/" gates
mutant 'a command does not wake attention' rtl/millrace_core.sv \
    's/issue_valid\[ATTENTION\] || unit_busy\[ATTENTION\] ||/unit_busy[ATTENTION] ||/' gates
mutant 'exponents of rows are written without a clock' rtl/millrace_core.sv \
    's/ln_valid || rexp_we || rexp_ren ||/ln_valid || rexp_ren ||/' tinyt
mutant 'a request does not wake the port of the host' rtl/millrace_core.sv \
    "s/!hr_idle || hr_valid != '0 ||/!hr_idle ||/" gates
mutant 'rows sleep behind the first MOVE_ROWS' rtl/millrace_core.sv \
    's/vq_last_q <= vq_op;/vq_last_q <= vq_op || vq_last_q;/' tinyt
mutant 'a command does not wake LOAD_ACT' rtl/train/mr_train.sv \
    's/= (vq_cmd_valid_i \&\& !is_move) || !la_ready;/= !la_ready;/' tinyt
mutant 'the clock of a GRAD stops while it waits' rtl/train/mr_train.sv \
    's/= gr_cmd_valid_i || !gr_idle;/= gr_cmd_valid_i;/' tinyt
mutant 'slopes that were read are taken without a clock' rtl/train/mr_train.sv \
    's/busy\[2\] || side_take_i\[3\] || side_pop_i;/busy[2];/' tinyt
mutant 'a finished row group does not wake the drain' rtl/array/mr_array.sv \
    's/meta_valid || drain_busy/drain_busy/' gates
mutant 'an access does not wake BAR 0' rtl/pcie/mr_pcie_bar.sv \
    's/= !(s_awvalid_i || s_wvalid_i || s_arvalid_i || !s_awready_o/= !(!s_awready_o/' rtl:pcie@gated
mutant 'the end of a run does not wake the executor' rtl/pcie/mr_pcie_exec.sv \
    's/state_q == S_PAUSE \&\& !wake;/state_q == S_PAUSE;/' rtl:pcie@gated
mutant 'LayerNorm counts its own cycles' rtl/vector/mr_layernorm.sv \
    's/^  logic n_reading_q, fetch/  logic p_q; always_ff @(posedge clk_i) p_q <= rst_ni \&\& !p_q;\n&/; s/!phase_i/!p_q/' gates

mutant 'a run of the function may have no longest descriptor' rtl/pcie/mr_pcie_exec.sv \
    "s/left_q <= mr_pkg::PCIE_RUN_BYTES/left_q < mr_pkg::PCIE_RUN_BYTES/" rtl:pcie@n2
mutant 'a run of the function may be a beat too long' rtl/pcie/mr_pcie_exec.sv \
    "s/mr_pkg::PCIE_RUN_BYTES/mr_pkg::PCIE_RUN_BYTES + 32'd64/g" rtl:pcie@n2

# ---- the driver's check of runs, and its program between two clients ----------------------------------------
mutant 'the driver leaves the second row memory as it is' driver/scrub.c \
    's/FETCH_ROWS_ROW, 1/FETCH_ROWS_ROW, 0/' unit:driver_check
mutant 'the driver lets runs of training be as long as others' driver/check.c \
    's/words != (trains ? .* : own)/words != own/' unit:driver_check
mutant 'the driver lets other runs be as long as those of training' driver/check.c \
    's/words != (trains ? \(.*\) : own)/words != own \&\& words != \1/' unit:driver_check
mutant 'the driver looks at no window of training' driver/check.c \
    's/return !trains || training_ok.*/return true;/' unit:driver_check
mutant 'the driver looks for windows of training too early' driver/check.c \
    's/count, desc + own, channels/count, desc + own - 16, channels/' unit:driver_check
for w in ROWS GRAD; do
    mutant "the driver takes any address for $w" driver/check.c \
        "s/get64(more + MR_TRAINING_${w}_LO)/extents->addr/" unit:driver_check
    mutant "the driver takes any size for $w" driver/check.c \
        "s/le32_to_cpu(more\[MR_TRAINING_${w}_BEATS\])/1/" unit:driver_check
done
mutant 'the driver takes any address for the stash' driver/check.c \
    's/get64(w + MR_STASH_LO)/extents->addr/' unit:driver_check
mutant 'the driver takes any size for the stash' driver/check.c \
    's/le32_to_cpu(w\[MR_STASH_BEATS\])/1/' unit:driver_check
mutant "the driver looks at the first channel's stash alone" driver/check.c \
    's/more + MR_RUN_CHANNEL(c)/more + MR_RUN_CHANNEL(0)/' unit:driver_check

# ---- legality and precise errors --------------------------------------------------------------------------
mutant 'the RTL lets q, k and v be a word too long' rtl/spec/device.def \
    's|DST_BASE + COLS / 64 <= QKV_WORDS|DST_BASE + COLS / 64 <= QKV_WORDS + 1|' programs
mutant 'the RTL lets prefix maxima be wider than attention' rtl/spec/device.def \
    '/^check MATMUL DST != DST_QKV || !PREFIX_MAX/d' programs
mutant 'the RTL takes any address for a window' rtl/spec/device.def \
    '/^check RUN PROG_LO/d' programs
mutant 'the RTL forgets that a residual is not tracked' rtl/spec/device.def \
    's/!TRACK_EXP ? 0 :/!TRACK_EXP ? EXP_COLS :/' programs
mutant 'the RTL lets two rows of results overlap' rtl/spec/device.def \
    's/OUT_STRIDE \* 16 || N_ROWS == 1/OUT_STRIDE * 16 || N_ROWS <= 2/' programs
mutant 'the RTL counts heads of one word' rtl/spec/device.def \
    's/HEADS \* HEAD_BEATS \* 64 <= W_MAX/HEADS * 64 <= W_MAX/' programs
mutant 'an error does not wait for earlier commands' rtl/control/mr_seq.sv \
    "s/wait_q <= stream_pending || earlier(/wait_q <= stream_pending \&\& earlier(/" programs
mutant 'two queues may wait for a semaphore' rtl/control/mr_legal.sv \
    "s/waits \&\& (owner_q\[5\*s+:5\] \& ~queue) != 5'd0/1'b0/" programs
mutant 'the weight window has a beat more' rtl/control/mr_stream_ctl.sv \
    "s/c_end > {1'b0, limit_i}/c_end > {1'b0, limit_i} + 33'd1/" programs
mutant 'a NaN of MATMUL is not in STICKY' rtl/vector/mr_epi_lanes.sv \
    "s/assign nan_o = nan_q;/assign nan_o = 1'b0;/" programs
mutant 'attention looks at K alone' rtl/attention/mr_attn_plan.sv \
    "s/50'(kv_q) + v_off_q + 50'(span_q)/50'(kv_q) + 50'(k_off_q) + 50'(span_q)/" programs
mutant 'a row weighs a later value' rtl/attention/mr_attn_prob.sv \
    "s/e_pos_q > cfg_pos_i + 16'(e_row_q)/e_pos_q > cfg_pos_i + 16'(e_row_q) + 16'd1/" rtl:attn@n2
mutant 'with each row a group sees a position more, and has an end' rtl/attention/mr_attn_plan.sv \
    "s/more = all ? 16'd1 : 16'(rows)/more = 16'(rows)/" rtl:attn@n2
mutant 'maxima up to the end for the first row of a run alone' rtl/attention/mr_attn_plan.sv \
    's/cfg_pm_i \&\& !cfg_to_end_i \&\& cont/cfg_pm_i \&\& cont/' rtl:attn@n2
mutant 'a row that continues has another end' rtl/vector/mr_rows.sv \
    "s/ || (row_q\[127:96\] != before_q\[95:64\])//" programs
mutant 'an end where the row stands' rtl/vector/mr_rows.sv \
    "s/row_q\[127:96\] <= row_q\[63:32\]/row_q[127:96] < row_q[63:32]/" programs
mutant 'LOAD_ROWS takes rows that lie apart' rtl/vector/mr_rows.sv \
    "s/before_q\[63:32\] + 32'd1/row_q[63:32]/" programs
mutant 'C model: a semaphore counts to 16' host/cmodel/legal.c 's/SEM_MOST = 15/SEM_MOST = 16/' programs-c
mutant 'C model: END with a matrix left over' host/cmodel/legal.c \
    's/if (mr_field(cmd, MR_F_CMD_OPCODE) == MR_OP_MATMUL ||/if (/' programs-c
mutant 'C model: a waiting command is no error' host/cmodel/legal.c 's/if (missing) {/if (0) {/' programs-c

# ---- C model ---------------------------------------------------------------------------------------------
mutant 'C model rounds where the accumulator floors' host/cmodel/num.h \
    's|return (int64_t)((uint64_t)d << MR_GUARD_BITS) >> (shift > MR_SHIFT_MAX ? MR_SHIFT_MAX : shift);|return ((int64_t)((uint64_t)d << MR_GUARD_BITS) + (shift ? (int64_t)1 << ((shift > MR_SHIFT_MAX ? MR_SHIFT_MAX : shift) - 1) : 0)) >> (shift > MR_SHIFT_MAX ? MR_SHIFT_MAX : shift);|' rtl:pe@portable
mutant 'C model truncates exp2' host/cmodel/num.c \
    's/(y + (8u << whole)) >> (4 + whole)/y >> (4 + whole)/' rtl:fp@l4
mutant 'C model flushes products too early' host/cmodel/num.h \
    's/fabs(p) < 0x1.ffffffp-127/fabs(p) <= 0x1p-126/' rtl:fp@l4
mutant 'C model: p(0) is 65536' host/cmodel/num.c \
    's/return (y + (8u << whole)) >> (4 + whole);/return n ? (y + (8u << whole)) >> (4 + whole) : 65536;/' rtl:fp@l4
mutant 'C model: rotary takes the angles of the next pair' host/cmodel/matmul.c \
    's/lanes->turn(y, cs + lane,/lanes->turn(y, cs + lane + 2,/' device:
mutant 'C model: a token does not see itself' host/cmodel/attend.c \
    's/n = w->row->last + 1;/n = w->row->last + (w->row->last == 0);/' device:
mutant 'C model: residual loses bits below 2^-11' host/cmodel/matmul.c \
    's/^    if (w->dst == MR_DST_RES)/    for (int c = 0; w->dst == MR_DST_RES \&\& c < n; c++)\n        y[c] = mr_fsub(mr_fadd(y[c], 4096.0f), 4096.0f);\n&/' device:
mutant 'C model: column maximum of the next group' host/cmodel/stash.c \
    's/from + 4 \* (i % 16), 4)/from + 4 * ((i + 1) % 16), 4)/' device:

# The inner loops, of the instruction sets that this processor has
has() { grep -qw "$1" /proc/cpuinfo; }
kernel() { mutant "$2" "host/cmodel/kernel_$1.c" "$3" unit:kernel; } # instruction set, name, sed
kernel portable 'portable: sections of MXFP4 are as long as those of MXINT8' \
    's/section += mr_section_bytes(w->fp4)/section += mr_section_bytes(false)/'
kernel portable 'portable: values are shifted before they are weighed' \
    's/(p\[s\] \* v\[i\]) << 12) >> shift;/(v[i]) << 12 >> shift) * p[s];/'
if has avx2; then
    kernel avx2 'avx2: MXFP4 keeps what was added to its elements' \
        's/_mm_set1_epi32(12 \* sum)/_mm_setzero_si128()/'
    kernel avx2 'avx2: distances are not clamped' \
        's/s = _mm_min_epi32(s, _mm_set1_epi32(MR_SHIFT_MAX));//'
    kernel avx2 'avx2: scores of two keys change places' \
        's/acc\[s\] += part\[0\] + part\[2\];/acc[s] += part[1] + part[2];/'
    kernel avx2 'avx2: gradients are rounded towards zero' \
        's/_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC/_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC/'
    kernel avx2 'avx2: small gradients have any scale' \
        's/_mm_min_epi32(_mm_max_epi32(e, least), most)/_mm_min_epi32(e, most)/'
    kernel avx2 'avx2: a unit that is too small goes unnoticed' \
        's/highest = _mm_max_epi32(highest, e);//'
fi
if has avx512_vnni; then
    kernel avx512 'avx512: distances wrap at 256 in the sum' \
        's/s = _mm_adds_epu8(s, _mm_shuffle_epi8(_mm_cvtsi32_si128((int)below), twice))/s = _mm_add_epi8(s, _mm_shuffle_epi8(_mm_cvtsi32_si128((int)below), twice))/'
    kernel avx512 'avx512: -6 of MXFP4 is -5.5' 's/120, 116));/120, 117));/'
    kernel avx512 'avx512: k-blocks behind the last four are left out' \
        's/if (k < end)/if (0)/'
    kernel avx512 'avx512: the scale of the other block of values' \
        's/shift\[i \/ 4\]/shift[0]/'
    kernel avx512_rows 'avx512, many tokens: distances do not wrap' \
        's/_mm512_and_si512(_mm512_sub_epi32(row_max, ea), _mm512_set1_epi32(255))/_mm512_sub_epi32(row_max, ea)/'
    kernel avx512_rows 'avx512, many rows: gradients are rounded towards zero' \
        's/_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC/_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC/'
    kernel avx512_rows 'avx512, many rows: a unit that is too small is held to one column' \
        's/highest = _mm512_max_epi32(highest, e);/highest = c == 3 ? _mm512_max_epi32(highest, e) : highest;/'
    kernel avx512_rows 'avx512, many tokens: high and low MXFP4 elements change places' \
        's/_mm256_or_si256(v, _mm256_slli_epi16(v, 4))/_mm256_or_si256(_mm256_slli_epi16(v, 8), _mm256_srli_epi16(v, 4))/'
fi

# Programs: semaphores
mutant 'program: what is still read may be written' host/engine/depend.c \
    's/for (int q = 0; writes_it \&\& q/for (int q = 0; 0 \&\& q/' unit:program
mutant 'program: the array has finished what it has started' host/engine/depend.c \
    's/queue == MR_QUEUE_ARRAY ? &before->start : &before->done/\&before->done/' unit:program
mutant 'program: commands wait for what is implied' host/engine/depend.c \
    's/if (has_finished(&e->start, &d->events\[wish\[i\].other\]))/if (0)/' unit:program

echo "1..$n"
exit $((bad != 0))

# Two commands matter: `make demo` and `make test`. The others are parts of them.
#
#   make demo                     build, then watch standing queries over the flights of New York 2013
#   make test                     everything CI runs (.ci/run)
#   make test NAME=joins          only the Rust tests whose name contains `joins`; SEED=.. replays a random one
#   make laws | slt | tpch | tpcds | flights | graphs      one family of tests
#   make soak                     the proofs for longer: 1,000 kills of the program, thousands of faults of a disk, random messages to a server, histories of 32 clients, fuzzers
#   make fuzz                     fuzzers led by coverage, SECONDS_EACH=300: messages, values, rows of COPY, files of the log, crashes; inputs gather in CARGO_TARGET_DIR/fuzz/corpus
#   make lint                     formatting and clippy
#   make wheel                    the Python package, as a wheel in target/wheels (docs/python.md)
#   make picture                  the picture of the demo in the README (docs/demo.svg)
#   make expectations             fill in tests/slt from PostgreSQL 15 (needs its binaries and `pip install psycopg[binary]`)

CARGO_TARGET_DIR ?= $(CURDIR)/target
export CARGO_TARGET_DIR
CARGO ?= cargo
VENV ?= $(CARGO_TARGET_DIR)/venv
BIN := $(CARGO_TARGET_DIR)/release

.PHONY: help demo build test laws slt tpch tpcds flights graphs soak fuzz lint fmt expectations doc picture wheel
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#  *make/make/p' Makefile

build:
	$(CARGO) build --release --workspace --bin anabranch

demo: build
	$(BIN)/anabranch demo

ifdef NAME
test:
	$(CARGO) test --release --workspace --no-fail-fast -- $(NAME)
else
test:
	.ci/run
endif

laws:
	$(CARGO) test --release --workspace --test it laws

slt:
	$(CARGO) test --release --workspace --test it slt

flights: build $(VENV)/ready
	$(VENV)/bin/python tests/compare/flights.py --anabranch $(BIN)/anabranch
	$(VENV)/bin/python tests/compare/questions.py

graphs: build $(VENV)/ready
	$(VENV)/bin/python tests/compare/graphs.py --anabranch $(BIN)/anabranch

tpch: $(VENV)/ready
	$(CARGO) build --release --workspace --bin tpch-check
	$(VENV)/bin/python tests/compare/tpch.py --program $(BIN)/tpch-check

tpcds: build
	python3 -m venv $(VENV)-tpcds
	$(VENV)-tpcds/bin/pip install --quiet --disable-pip-version-check -r tests/compare/tpcds-requirements.txt
	$(VENV)-tpcds/bin/python tests/compare/tpcds.py --anabranch $(BIN)/anabranch

FUZZERS := store:fuzz::any_bytes_may_stand_in_a_segment store:fuzz::any_bodies_may_stand_in_the_frames_of_a_segment \
	store:fuzz::any_bodies_may_stand_in_the_frames_of_a_snapshot store:fuzz::any_bytes_may_stand_in_a_manifest \
	store:fuzz::any_bytes_of_a_commit_may_be_others \
	store:crashes::crashes_that_coverage_leads_to_lose_nothing server:wire::fuzz::any_bytes_may_be_a_message \
	server:wire::fuzz::any_texts_may_be_an_exchange_of_passwords \
	server:wire::fuzz::any_bytes_may_be_the_value_of_a_parameter \
	engine:copy::fuzz::any_bytes_may_be_rows_of_the_binary_format engine:copy::fuzz::any_bytes_may_be_rows_of_text \
	engine:copy::fuzz::any_bytes_may_be_rows_of_csv

fuzz:
	cargo bolero --version >/dev/null 2>&1 || $(CARGO) install cargo-bolero --version '^0.13'
	for fuzzer in $(FUZZERS); do \
	    name=$$(echo $${fuzzer#*:} | sed 's/::/__/g') && corpus=$(CARGO_TARGET_DIR)/fuzz/corpus/$$name && mkdir -p $$corpus && \
	    find crates -path "*/__fuzz__/$$name/corpus/*" -exec cp -t $$corpus {} + && \
	    $(CARGO) bolero test -p anabranch-$${fuzzer%%:*} -s NONE --target-dir $(CARGO_TARGET_DIR)/fuzz \
	        --corpus-dir $$corpus -T $${SECONDS_EACH:-300}s $${fuzzer#*:} || exit 1; \
	done

soak:
	KILLS=$${KILLS:-1000} ROUNDS=$${ROUNDS:-100} $(CARGO) test --release --workspace --test it -- kill:: restore:: crashes:: damage:: faults:: places:: hostile:: histories::
	$(MAKE) fuzz

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings

fmt:
	$(CARGO) fmt --all

wheel: $(VENV)/ready
	$(VENV)/bin/pip install --quiet --disable-pip-version-check 'maturin>=1.13,<2'
	$(VENV)/bin/maturin build --release --out $(CARGO_TARGET_DIR)/wheels

expectations: $(VENV)/ready
	$(VENV)/bin/python tools/slt_expect.py

picture: build $(VENV)/ready
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r tools/requirements.txt
	$(VENV)/bin/python tools/demo_picture.py --anabranch $(BIN)/anabranch --out docs/demo.svg

doc:
	$(CARGO) doc --workspace --no-deps

$(VENV)/ready: tests/compare/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

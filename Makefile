# Every verb sets up what it needs: a Python >= 3.10 and a package index are enough. `make` alone lists the verbs.
PYTHON ?= python3
RUN := $(PYTHON) tools/run.py
PYTEST_ARGS ?=
# Without Spark, tests take a process for each core, up to four.
CORES = $(shell $(PYTHON) -c "import os; print(min(4, len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()))")
ON_CORES = -n $(CORES) --dist loadgroup
# One more has Spark's session: while Python and Java wait for each other, a core would idle.
TEST_PROCESSES ?= $(shell expr $(CORES) + 1)
IN_PARALLEL = -n $(TEST_PROCESSES) --dist loadgroup
# Each has a process of Apache Hudi, and while one of the two computes the other waits.
INTEROP_PROCESSES ?= 2
INTEROP = -n $(INTEROP_PROCESSES) --dist loadfile
# Tests that are named run alone.
INTEROP_TESTS = $(if $(filter tests/%,$(PYTEST_ARGS)),,tests/interop)
BENCH_ARGS ?=
HUDI ?= 1.0.2
HUDI_NEXT ?= 1.2.0
RIVALS ?= 1.0.2,1.2.0
DEMO_ARGS ?=
MUTANTS_ARGS ?=
SCALE_ARGS ?=
WRITERS_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-full shapes-full doors-full servers connect spark-oldest crash-full pairs-full merges-full fencing-full logs-full writers-full faults-full spark-kills-full streams-full cluster-full simulation simulation-full simulation-mutants stores stores-full damage-full damage-tables damage-tables-full hostile-full skipping-full predicates-full coverage mutants check lint types layers conformance interop interop-full bench bench-smoke scale ci clean distclean

help: ## list the verbs
	@echo "make <verb>, each does its own set-up (PYTHON=python3.12 chooses the interpreter):"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv with everything, find or install Java
	@$(RUN) --java

demo: ## write, update, query and time-travel a table through plain PySpark (DEMO_ARGS="--size smoke" is short)
	@$(RUN) --java python -m demo $(DEMO_ARGS)

test: ## tests that need no Apache Hudi, of large sets and slow tests the part that has its turn (PYTEST_ARGS="-k timeline")
	@$(RUN) --java python -m pytest --ignore=tests/interop $(IN_PARALLEL) $(PYTEST_ARGS)

test-fast: ## the same in three minutes: no Spark, and none of the places that tests/thorough.py lists (crashes, damage, servers, chance)
	@HYPOTHESIS_PROFILE=quick $(RUN) python -m pytest --ignore=tests/interop -m "not spark and not thorough" $(ON_CORES) $(PYTEST_ARGS)

test-full: ## the same, everything
	@HUDIMETA_TURN=all $(RUN) --java python -m pytest --ignore=tests/interop $(IN_PARALLEL) $(PYTEST_ARGS)

shapes-full: ## every shape of query through every door of Spark on every kind of table, some five minutes
	@HUDIMETA_TURN=all HUDIMETA_SHAPES_FULL=1 $(RUN) --java python -m pytest tests/spark/test_query_shapes.py --timeout=900 $(PYTEST_ARGS)

servers: ## start ZooKeeper and moto's Amazon for tests, print how they are found, and run until control-C
	@$(RUN) --java python -m tests.concurrency.servers

connect: ## Spark's tests of SQL, procedures, table functions, HudiTable, streams, routed writes, query shapes and the guide through Spark Connect, some twenty minutes
	@HUDIMETA_TURN=all HUDIMETA_TEST_REMOTE="local[2,4]" $(RUN) --java python -m pytest $(wildcard tests/spark/test_sql_*.py) tests/spark/test_scripts.py tests/spark/test_merge_into.py tests/spark/test_random_merges.py tests/spark/test_quick_start.py tests/spark/test_streams.py tests/spark/test_table_functions.py tests/spark/test_hudi_table.py tests/spark/test_routed_writes.py tests/spark/test_query_shapes.py tests/spark/test_query_kinds.py tests/docs/test_spark.py $(PYTEST_ARGS)

doors-full: ## all tests of writes, and services after them, through HudiTable, by Spark's executors: a classic session, then Spark Connect, two hours
	@HUDIMETA_TURN=all HUDIMETA_DOORS_FULL=1 $(RUN) --java python -m pytest tests/write tests/services tests/concurrency -m spark --timeout=900 $(PYTEST_ARGS)
	@HUDIMETA_TURN=all HUDIMETA_DOORS_FULL=1 HUDIMETA_TEST_REMOTE="local[2,4]" $(RUN) --java python -m pytest tests/write tests/services tests/concurrency -m spark --timeout=900 $(PYTEST_ARGS)

spark-oldest: ## a small set of tests on the oldest Spark, Arrow and sqlglot that are supported, in an environment of their own
	@HUDIMETA_TURN=all $(RUN) --spark-oldest python -m pytest tests/spark tests/write tests/predicate/test_predicate_notations.py tests/formats/avro/test_rows.py -m oldest $(PYTEST_ARGS)

stores: ## tables on S3 through its real client, in an environment of its own
	@$(RUN) --stores python -m pytest tests/storage/test_real_stores.py $(PYTEST_ARGS)

stores-full: ## the same on Google's and Azure's stores, too: fetches Azurite by npm and fake-gcs-server by go
	@$(RUN) --stores python -m tests.storage.cloud_servers python -m pytest tests/storage/test_real_stores.py $(PYTEST_ARGS)

crash-full: ## kills and errors at every storage call of everything, then a thousand random histories of 50 steps: hours
	@HUDIMETA_TURN=all CRASH_FULL=1 CRASH_KILLS=1000 $(RUN) python -m pytest tests/crash tests/write/test_random_histories.py --timeout=7200 $(PYTEST_ARGS)

pairs-full: ## a thousand random pairs of writes that meet, against what one after the other leaves (HUDIMETA_PAIRS_SEED says which), half an hour
	@HUDIMETA_PAIRS=$${HUDIMETA_PAIRS:-1000} $(RUN) python -m pytest tests/concurrency/test_random_pairs.py --timeout=7200 $(PYTEST_ARGS)

merges-full: ## three hundred random MERGEs against a model (HUDIMETA_MERGES_SEED says which), half an hour
	@HUDIMETA_MERGES=$${HUDIMETA_MERGES:-300} $(RUN) --java python -m pytest tests/spark/test_random_merges.py $(PYTEST_ARGS)

fencing-full: ## writers that stand still for longer than their lock lasts, at every request of a publication, and two writers over an S3 that fails, an hour
	@HUDIMETA_TURN=all HUDIMETA_FENCING_FULL=1 $(RUN) python -m pytest tests/concurrency/test_fencing.py tests/concurrency/test_sigstop.py --timeout=3600 $(PYTEST_ARGS)
	@HUDIMETA_S3_TURNS=$${HUDIMETA_S3_TURNS:-200} $(RUN) python -m pytest tests/concurrency/test_s3.py --timeout=7200 $(PYTEST_ARGS)

logs-full: ## random histories with log compactions against the same without: two hundred of each kind of table, two hours
	@HUDIMETA_TURN=all HUDIMETA_LOG_COMPACTION_SEEDS=$${HUDIMETA_LOG_COMPACTION_SEEDS:-200} $(RUN) python -m pytest tests/services/test_log_compaction.py -k twin --timeout=7200 $(PYTEST_ARGS)

writers-full: ## two to sixteen writers in processes that are killed, beside services and a reader, on all kinds of table: a thousand commits (WRITERS_ARGS="--commits 100")
	@$(RUN) python -m tests.concurrency.storm $(WRITERS_ARGS)

faults-full: ## routed writes: fifty while workers die at random and slow tasks run twice, and one of five million rows, some twenty minutes
	@HUDIMETA_FAULTS_FULL=1 HUDIMETA_ROUTED_LARGE=1 $(RUN) --java python -m pytest tests/spark/test_routed_writes.py -k "random_kills or does_not_grow" --timeout=3900 $(PYTEST_ARGS)

spark-kills-full: ## sixty kills of Spark's drivers (Python, the JVM, both) and workers at random moments of writes, streams, statements and services, half an hour
	@HUDIMETA_SPARK_KILLS=$${HUDIMETA_SPARK_KILLS:-60} $(RUN) --java python -m pytest tests/spark/test_killed_drivers.py --timeout=7200 $(PYTEST_ARGS)

streams-full: ## a stream from table to table, two hundred micro-batches while its driver is killed at random moments, plain and attached, an hour
	@HUDIMETA_STREAM_BATCHES=$${HUDIMETA_STREAM_BATCHES:-200} $(RUN) --java python -m pytest -s tests/spark/test_killed_streams.py --timeout=7200 $(PYTEST_ARGS)

cluster-full: ## the demo, writes, a compaction and streams on a standalone cluster on loopback, whose workers are killed, five minutes
	@HUDIMETA_CLUSTER=1 $(RUN) --java python -m pytest -s tests/spark/test_cluster.py --timeout=3600 $(PYTEST_ARGS)

predicates-full: ## twenty thousand random predicates and forty calls of every function judged by Spark and by us, over all types, recorded tables and doors, an hour
	@HUDIMETA_TURN=all HUDIMETA_PREDICATES=20000 HUDIMETA_CALLS=40 $(RUN) --java python -m pytest tests/predicate/test_random_predicates.py tests/predicate/test_every_function.py --timeout=3600 $(PYTEST_ARGS)

simulation: ## two thousand simulated histories of writers, readers and services at once, under all locks and faults
	@HUDIMETA_HISTORIES=$${HUDIMETA_HISTORIES:-2000} $(RUN) python -m pytest tests/testing/simulation/test_histories.py -k hold $(ON_CORES) $(PYTEST_ARGS)

simulation-full: ## a hundred thousand of them, hours (HUDIMETA_HISTORIES says how many, HUDIMETA_HISTORIES_SEED from which seed on)
	@HUDIMETA_HISTORIES=$${HUDIMETA_HISTORIES:-100000} $(RUN) python -m pytest tests/testing/simulation/test_histories.py -k hold $(ON_CORES) $(PYTEST_ARGS)

simulation-mutants: ## break the rules that keep many writers apart, one at a time, and count histories until one does not hold
	@$(RUN) python tools/simulation_mutants.py $(MUTANTS_ARGS)

damage-full: ## ten thousand damages to recorded files of each format
	@HUDIMETA_TURN=all HUDIMETA_DAMAGE=10000 $(RUN) python -m pytest tests/formats/test_damaged_recordings.py --timeout=1800 $(PYTEST_ARGS)

damage-tables: ## a thousand damages to files of whole tables, read, written to and serviced, and as many to tables by Apache Hudi
	@HUDIMETA_DAMAGED_TABLES=$${HUDIMETA_DAMAGED_TABLES:-1000} $(RUN) python -m pytest tests/damage --timeout=3600 $(PYTEST_ARGS)

damage-tables-full: ## forty thousand of them, hours (HUDIMETA_DAMAGED_TABLES says how many, HUDIMETA_DAMAGE_SEED which)
	@HUDIMETA_DAMAGED_TABLES=$${HUDIMETA_DAMAGED_TABLES:-40000} $(RUN) python -m pytest tests/damage --timeout=86400 $(PYTEST_ARGS)

hostile-full: ## two thousand tables of which one text or number is hostile, some forty minutes (HUDIMETA_HOSTILE_SEED says which)
	@HUDIMETA_TURN=all HUDIMETA_HOSTILE=2000 $(RUN) python -m pytest tests/hostile --timeout=7200 $(PYTEST_ARGS)

skipping-full: ## five thousand generated queries, each read with all indexes, with each of them off, and with none
	@HUDIMETA_TURN=all HUDIMETA_SKIPPING_QUERIES=5040 $(RUN) python -m pytest tests/indexes/skipping/test_switching_indexes.py -k combination --timeout=3600 $(PYTEST_ARGS)

coverage: ## branch coverage of the engine by the tests without Spark, at least 92 percent
	@HUDIMETA_TURN=all $(RUN) python -m pytest --ignore=tests/interop -m "not spark" $(ON_CORES) --cov=hudimeta --cov-branch --cov-report=term:skip-covered --cov-fail-under=92 $(PYTEST_ARGS)

mutants: ## change the engine in 150 small places, and list what no test notices (MUTANTS_ARGS="--count 50 --seed 7 predicate"), an hour
	@$(RUN) python tools/mutants.py record
	@$(RUN) python tools/mutants.py run $(MUTANTS_ARGS)

check: lint types layers ## lint, strict types, layer order, that each mutant fits the code

lint:
	@$(RUN) ruff check hudimeta datasource tests benchmarks tools demo
	@$(RUN) ruff format --check hudimeta datasource tests benchmarks tools demo

types:
	@$(RUN) mypy

layers:
	@$(RUN) python -m pytest -q tests/test_layers.py tests/testing/simulation/test_mutants.py

conformance: ## compare the engine and Spark with recorded answers of Apache Hudi (needs ../shared)
	@HUDIMETA_TURN=all $(RUN) --java python -m pytest tests/conformance $(PYTEST_ARGS)

interop: ## alternate with real Apache Hudi on the same tables, the part that has its turn (fetches Spark 3.5 and Hudi's jar once; HUDI=1.2.0 chooses it)
	@$(RUN) --interop=$(HUDI) python -m pytest $(INTEROP_TESTS) $(INTEROP) $(PYTEST_ARGS)

interop-full: ## the same with all rounds, all ways to name rows and the whole matrix of tables, and a small one of version 9, an hour
	@HUDIMETA_TURN=all HUDIMETA_INTEROP_FULL=1 $(RUN) --interop=$(HUDI) python -m pytest $(INTEROP_TESTS) $(INTEROP) $(PYTEST_ARGS)
	@HUDIMETA_TURN=all HUDIMETA_INTEROP_FULL=1 $(RUN) --interop=$(HUDI_NEXT) python -m pytest tests/interop/test_matrix.py tests/interop/test_partitioned_record_index.py tests/interop/test_alternation.py tests/interop/test_random_tables.py $(INTEROP) $(PYTEST_ARGS)

bench: ## measure every claim against its rival (BENCH_ARGS="P1 P3 --scale 0.1")
	@$(RUN) --interop=$(RIVALS) python -m benchmarks $(BENCH_ARGS)

bench-smoke: ## the same at a size that takes a minute, to see that it runs; needs no Apache Hudi
	@$(RUN) --java python -m benchmarks --smoke $(BENCH_ARGS)
	@$(RUN) python -m benchmarks.scale --smoke plan list compaction clean

scale: ## measure what each phase of work costs, and say it of tables that no machine here holds (SCALE_ARGS="plan compaction")
	@$(RUN) --java python -m benchmarks.scale $(SCALE_ARGS)

ci: ## what the integration server runs
	@.ci/run

clean: ## remove what tests and tools leave behind
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .mutants spark-warehouse metastore_db derby.log demo-tables benchmarks/results
	find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean ## also remove the environments
	rm -rf .venv .venv-interop .venv-spark-oldest .venv.lock .venv-interop.lock .venv-spark-oldest.lock

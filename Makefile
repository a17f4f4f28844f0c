# The commands for new users; each first installs what is missing. Developers also have `cargo xtask help`.

RUST = scripts/with-rust
# Where cargo builds, when the environment says so.
TARGET = $(or $(CARGO_TARGET_DIR),target)

.DEFAULT_GOAL := help
.PHONY: help demo test dist bench bench-jvm soak-jvm soak-kernel tidy

help:
	@echo 'make demo    build Parallax and run the demo: where the time of a slow response goes'
	@echo 'make test    run the complete test suite: tidy, formatting, lints, build, tests'
	@echo 'make dist    build the packaged program in target/dist/package and check it in a chroot (as root)'
	@echo 'make bench   measure the overhead of the load generator, compared with wrk'
	@echo 'make bench-jvm   measure the overhead of recording in a JVM and of Vert.x metrics, compared with others'
	@echo 'make soak-jvm    run the long forms of the tests under jvm/; needs a quiet machine with 10 GB of free memory'
	@echo 'make soak-kernel   run the tests of watch against the counters of real servers with 20 times their load, as root'
	@echo 'make tidy    check the rules that the compiler does not know'
	@echo
	@echo 'All except tidy first install what is missing (scripts/setup) and tell you what.'

demo:
	@scripts/setup demo
	$(RUST) cargo build --release --locked -p parallax
	$(TARGET)/release/parallax demo

# The flags of all steps of `xtask ci`, so that cargo compiles what xtask uses only once.
test: export RUSTFLAGS = -D warnings
test:
	@scripts/setup test
	$(RUST) cargo xtask ci

dist:
	@scripts/setup demo
	scripts/dist

bench:
	@scripts/setup bench
	bench/run

bench-jvm:
	@scripts/setup bench-jvm
	mvn --batch-mode --no-transfer-progress --strict-checksums -q -f jvm/pom.xml package -DskipTests -Dmaven.javadoc.skip=true
	java -jar jvm/benchmarks/target/benchmarks.jar
	$(RUST) cargo build --profile dist --locked -p parallax
	mvn --batch-mode --no-transfer-progress --strict-checksums -q -f jvm/pom.xml -pl vertx45,vertx50,vertx51 -am test \
	  -Dtest=ServerCost -Dparallax.bin=$(abspath $(TARGET))/dist/parallax

# `package`, for agent-tests run the agent's jar. PoolTrapTest is in other modules too, and there as ever.
soak-jvm:
	@scripts/setup soak-jvm
	$(RUST) cargo build --release --locked -p parallax
	mvn --batch-mode --no-transfer-progress --strict-checksums -f jvm/pom.xml -pl pauses,disturber,spring-boot-starter,agent-tests -am package \
	  -Dmaven.javadoc.skip=true \
	  -Dtest=ExactnessTest,CorrectionTest,DisturbanceTest,PoolTrapTest,ArticleTest,LoopTest \
	  -Dlong=true -Ddisturber.seconds=60 -Ddisturber.heap=8g -Dparallax.trap.ms=2000 -Darticle.ms=2000 \
	  -Dloop.seconds=60 -Dparallax.bin=$(abspath $(TARGET))/release/parallax

soak-kernel: export PARALLAX_SOAK ?= 20
soak-kernel:
	@scripts/setup test
	$(RUST) cargo build --release --locked -p parallax
	$(RUST) cargo test --locked -p kernel --test kernel servers::names -- --nocapture

tidy:
	@$(RUST) cargo xtask tidy

//! All tests of the public interface in one program: linking many programs would take minutes.

mod cache;
mod cold_reads;
mod events;
mod explain;
mod explained;
#[cfg(feature = "export")]
mod export;
mod hostile_names;
mod html_report;
mod info;
mod linux;
mod linux_damage;
mod linux_page;
mod mcp;
#[cfg(feature = "measure")]
mod measure;
#[cfg(feature = "measure")]
mod measure_files;
#[cfg(feature = "measure")]
mod measure_net;
#[cfg(feature = "measure")]
mod measure_why;
mod numbers;
mod program;
mod prove;
#[cfg(feature = "measure")]
mod prove_verdict;
mod readme;
mod real_traces;
mod record;
mod record_judged;
mod record_now;
mod refusals;
mod reports;
mod scenarios;
#[cfg(feature = "open")]
mod served;
#[cfg(feature = "open")]
mod server;
#[cfg(all(feature = "measure", feature = "open"))]
mod server_samples;
mod simulate;
mod sql;
mod stats;
mod trim;
mod tune;
mod tune_adapters;
mod tune_audit;
mod tune_bisect;
mod tune_dfsn;
mod tune_replica;
mod tune_supports;

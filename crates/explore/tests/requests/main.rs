//! Tests of requests that the page sends. They are one program, because the requests' generic code takes long to compile
//! for each program.

mod answers;
mod hostile;
mod real_traces;
mod selections;
mod simulated;

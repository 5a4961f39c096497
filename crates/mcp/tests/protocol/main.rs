//! Tests of the server with the client of the official SDK. They are one program, because the SDK's generic code takes
//! more than a minute to compile for each program.

mod client;
mod hostile;
mod server;
mod tasks;
mod true_answers;

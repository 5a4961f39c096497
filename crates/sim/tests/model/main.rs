//! Tests of the model and of the traces that it writes. They are one program, because each program would compile the
//! generic code of the simulator again.

mod disks;
mod dispatcher;
mod documentation;
mod errors;
mod interrupts;
mod invariants;
mod lives;
mod moments;
mod network;
mod packets;
mod random_scenario;
mod read_back;
mod routines;
mod scheduling;
mod topology;

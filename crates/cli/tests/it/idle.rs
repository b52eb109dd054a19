//! What a client costs that has logged in and does nothing.
//!
//! A client took 793 KB: the allocator's pages were huge (2 MiB), and each thread touched some of
//! its own. The server forbids huge pages since.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::connect::Server;
use crate::support::Place;

/// Kilobytes of memory of a client, at most.
const CLIENT_KB_MAX: u64 = 200;
const N_CLIENTS: u64 = 200;

/// Logs in and waits until the server is ready for a query.
fn log_in(address: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    let body = [&196_608_u32.to_be_bytes()[..], b"user\0idle\0\0"].concat();
    let message = [&(body.len() as u32 + 4).to_be_bytes()[..], &body].concat();
    client.write_all(&message).unwrap();
    let (mut told, mut bytes) = (Vec::new(), [0; 4096]);
    while !told.ends_with(b"Z\0\0\0\x05I") {
        let n_read = client.read(&mut bytes).unwrap();
        assert!(n_read > 0, "{}", String::from_utf8_lossy(&told));
        told.extend(&bytes[..n_read]);
    }
    client
}

/// Kilobytes of memory that a process has.
fn resident_kb(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn two_hundred_idle_clients_cost_less_than_200_kb_each() {
    let place = Place::new();
    let server = Server::start(&place);
    let address = server.url.split(['@', '/']).nth(3).unwrap();
    // The first client has things made that all others use.
    let first = log_in(address);
    let before = resident_kb(server.id());
    let clients: Vec<TcpStream> = (0..N_CLIENTS).map(|_| log_in(address)).collect();
    let each = (resident_kb(server.id()) - before) / N_CLIENTS;
    assert!(each < CLIENT_KB_MAX, "an idle client costs {each} KB");
    drop((first, clients));
}

// SPDX-License-Identifier: GPL-2.0-or-later
// A server in which one session of ten and its connection own each other by Rc, so that neither is ever freed.
use std::cell::RefCell;
use std::io::{Read, Write};
use std::mem::size_of;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

struct Session {
    headers: Vec<String>,
    connection: RefCell<Option<Rc<Connection>>>,
}

struct Connection {
    session: RefCell<Option<Rc<Session>>>,
    buffer: [u8; 256],
}

// An Rc's block has two counts before the object.
const RC_HEADER: usize = 2 * size_of::<usize>();

static REQUESTS: AtomicU64 = AtomicU64::new(0);
static LOST_BLOCKS: AtomicU64 = AtomicU64::new(0);
static LOST_BYTES: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn open_session(path: &str) -> Rc<Session> {
    let mut headers = Vec::new();
    for i in 0..20 {
        headers.push(format!("X-Header-{}: a value for {}", i, path));
    }
    Rc::new(Session { headers, connection: RefCell::new(None) })
}

#[inline(never)]
fn open_connection(session: &Rc<Session>) -> Rc<Connection> {
    let connection = Rc::new(Connection { session: RefCell::new(None), buffer: [0; 256] });
    *session.connection.borrow_mut() = Some(connection.clone());
    connection
}

fn count_lost(session: &Session) {
    let bytes = 2 * RC_HEADER
        + size_of::<Session>()
        + size_of::<Connection>()
        + session.headers.capacity() * size_of::<String>()
        + session.headers.iter().map(|header| header.capacity()).sum::<usize>();
    LOST_BLOCKS.fetch_add(3 + session.headers.len() as u64, Relaxed);
    LOST_BYTES.fetch_add(bytes as u64, Relaxed);
}

#[inline(never)]
fn handle_request(path: &str) -> String {
    if path == "/truth" {
        return format!("{} {}\n", LOST_BLOCKS.load(Relaxed), LOST_BYTES.load(Relaxed));
    }
    let session = open_session(path);
    let connection = open_connection(&session);
    if REQUESTS.fetch_add(1, Relaxed) % 10 == 0 {
        *connection.session.borrow_mut() = Some(session.clone());
        count_lost(&session);
    }
    format!("hello {} {}\n", session.headers[3], connection.buffer[0])
}

fn serve(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    stream.set_nodelay(true).unwrap();
    while let Ok(len) = stream.read(&mut buffer) {
        if len == 0 {
            break;
        }
        let request = String::from_utf8_lossy(&buffer[..len]);
        let body = handle_request(request.split(' ').nth(1).unwrap_or("/"));
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", body.len(), body);
        if stream.write_all(answer.as_bytes()).is_err() {
            break;
        }
    }
}

fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("ready {}", listener.local_addr().unwrap().port());
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || serve(stream));
    }
}

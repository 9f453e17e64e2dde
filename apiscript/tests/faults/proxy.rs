//! A proxy to an etcd member that can cut, hold and slow down connections.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The treatment of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Open,
    /// Every piece is delayed by this time.
    Slow(Duration),
    /// Nothing passes, and connections stay open: a network partition.
    Held,
    /// Connections are closed, and new ones are refused.
    Cut,
}

/// A proxy of one address.
pub(crate) struct Proxy {
    pub(crate) url: String,
    state: Arc<State>,
}

struct State {
    way: Mutex<Way>,
    changed: Condvar,
    upstream: String,
}

impl Proxy {
    pub(crate) fn to(upstream: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let (way, changed) = (Mutex::new(Way::Open), Condvar::new());
        let state = Arc::new(State { way, changed, upstream: upstream.to_owned() });
        let served = state.clone();
        // The thread ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let state = served.clone();
                thread::spawn(move || state.serve(client));
            }
        });
        Ok(Self { url, state })
    }

    pub(crate) fn set(&self, way: Way) {
        *self.state.way.lock() = way;
        self.state.changed.notify_all();
    }
}

impl State {
    fn serve(self: Arc<Self>, client: TcpStream) -> io::Result<()> {
        if !self.passes() {
            return client.shutdown(Shutdown::Both);
        }
        let server = TcpStream::connect(&self.upstream)?;
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
            // How often a connection checks whether it is cut.
            stream.set_read_timeout(Some(Duration::from_millis(20)))?;
        }
        let (from, to) = (server.try_clone()?, client.try_clone()?);
        let other = self.clone();
        thread::spawn(move || other.carry(from, to));
        self.carry(client, server);
        Ok(())
    }

    /// Copies bytes from one side to the other, while both are open.
    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 16 * 1024];
        while self.passes() {
            match from.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) if self.passes() && to.write_all(&bytes[..count]).is_ok() => {}
                Err(why) if is_timeout(&why) => {}
                Ok(_) | Err(_) => break,
            }
        }
        for stream in [from, to] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Waits while a piece is held; false if it does not pass.
    fn passes(&self) -> bool {
        let mut way = self.way.lock();
        while *way == Way::Held {
            self.changed.wait(&mut way);
        }
        match *way {
            Way::Slow(delay) => {
                drop(way);
                thread::sleep(delay);
                true
            }
            Way::Open => true,
            Way::Held | Way::Cut => false,
        }
    }
}

fn is_timeout(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

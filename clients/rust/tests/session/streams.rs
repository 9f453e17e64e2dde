//! Programs that connect to pods: exec, logs, ports. They use the kubelets that
//! `clients/with-kubelet` starts; without them the tests are skipped, and say so.

#![expect(clippy::print_stderr, reason = "skipped tests are reported on the terminal")]

use anyhow::{Context, Result};
use futures_util::AsyncBufReadExt;
use futures_util::TryStreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{
    AttachParams, AttachedProcess, LogParams, Patch, PatchParams, PostParams, TerminalSize,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::{World, object};

/// The names of pods, one on a kubelet before v1.36 and one on a kubelet of v1.36.
const PODS: [&str; 2] = ["old", "new"];

/// A world with these pods, if there are kubelets.
async fn world() -> Result<Option<World>> {
    let kubelets = std::env::var("PINTLE_TEST_KUBELETS").unwrap_or_default();
    let ports: Vec<u16> = kubelets.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    if ports.len() != PODS.len() {
        eprintln!("no streams are tried: there are no kubelets (see clients/with-kubelet)");
        return Ok(None);
    }
    let world = World::start().await?;
    let nodes: Api<Node> = Api::all(world.client.clone());
    for (name, port) in PODS.into_iter().zip(ports) {
        let node = object(json!({"metadata": {"name": name}}))?;
        nodes.create(&PostParams::default(), &node).await?;
        let features: &[&str] = if name == "new" { &["ExtendWebSocketsToKubelet"] } else { &[] };
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "declaredFeatures": features,
        }});
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
        let pod = object(json!({"metadata": {"name": name}, "spec": {
            "nodeName": name, "containers": [{"name": "c", "image": "i"}],
        }}))?;
        world.api::<Pod>().create(&PostParams::default(), &pod).await?;
    }
    Ok(Some(world))
}

/// A command's output, and its exit code.
async fn outcome(mut process: AttachedProcess) -> Result<(String, i32)> {
    let mut out = String::new();
    let status = process.take_status().context("the process has a status")?;
    process.stdout().context("there is output")?.read_to_string(&mut out).await?;
    let status = status.await.context("commands end with a status")?;
    process.join().await?;
    let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
    let code = causes.iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"));
    let code = code.and_then(|cause| cause.message.as_deref()).unwrap_or("0");
    Ok((out, code.parse()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_return_output_and_exit_codes() -> Result<()> {
    let Some(world) = world().await? else { return Ok(()) };
    for pod in PODS {
        for (code, end) in [(0, "true"), (1, "exit 1"), (137, "kill -9 $$")] {
            let command = ["sh".to_owned(), "-c".to_owned(), format!("echo out; {end}")];
            let params = AttachParams::default().container("c").stderr(false);
            let process = world.api::<Pod>().exec(pod, command, &params).await?;
            assert_eq!(outcome(process).await?, ("out\n".to_owned(), code), "{pod}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_ends_and_terminals_are_resized() -> Result<()> {
    let Some(world) = world().await? else { return Ok(()) };
    for pod in PODS {
        let params = AttachParams::default().container("c").stdin(true).stderr(false);
        let mut process = world.api::<Pod>().exec(pod, ["wc", "-c"], &params).await?;
        let mut stdin = process.stdin().context("there is input")?;
        stdin.write_all(&[b'x'; 1000]).await?;
        stdin.shutdown().await?;
        drop(stdin);
        let (out, code) = outcome(process).await?;
        assert_eq!((out.trim(), code), ("1000", 0), "{pod}");
        let params = AttachParams::interactive_tty().container("c");
        let mut process = world.api::<Pod>().exec(pod, ["size"], &params).await?;
        let mut sizes = process.terminal_size().context("there is a terminal")?;
        sizes.try_send(TerminalSize { width: 91, height: 33 })?;
        assert_eq!(outcome(process).await?.0, "91 columns, 33 rows\n", "{pod}");
    }
    Ok(())
}

/// One direction after the other: the client does not read while it waits to write.
#[tokio::test(flavor = "multi_thread")]
async fn many_bytes_are_copied_both_ways() -> Result<()> {
    let Some(world) = world().await? else { return Ok(()) };
    let count = std::env::var("PINTLE_TEST_BYTES").map_or(Ok(8 << 20), |count| count.parse())?;
    // No two pieces are equal, so a lost or swapped one is noticed.
    let sent: Vec<u8> = (0..count / 8_u64).flat_map(u64::to_le_bytes).collect();
    let directory = tempfile::tempdir()?;
    for pod in PODS {
        let file = directory.path().join(pod).display().to_string();
        let params = AttachParams::default().container("c").stdin(true).stderr(false);
        let write = ["sh", "-c", &format!("cat >{file}")];
        let mut process = world.api::<Pod>().exec(pod, write, &params).await?;
        let mut stdin = process.stdin().context("there is input")?;
        stdin.write_all(&sent).await?;
        stdin.shutdown().await?;
        drop(stdin);
        assert_eq!(outcome(process).await?, (String::new(), 0), "{pod}");
        assert!(std::fs::read(&file)? == sent, "{pod}: other bytes arrived");
        let params = AttachParams::default().container("c").stderr(false);
        let mut process = world.api::<Pod>().exec(pod, ["cat", &file], &params).await?;
        let mut back = Vec::with_capacity(sent.len());
        let mut stdout = process.stdout().context("there is output")?;
        stdout.read_to_end(&mut back).await?;
        assert!(back == sent, "{pod}: other bytes came back");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_followed_and_ports_forwarded() -> Result<()> {
    let Some(world) = world().await? else { return Ok(()) };
    let site = TcpListener::bind("127.0.0.1:0").await?;
    let port = site.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = site.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    for pod in PODS {
        let params =
            LogParams { follow: true, container: Some("c".to_owned()), ..LogParams::default() };
        let log = world.api::<Pod>().log_stream(pod, &params).await?;
        assert_eq!(log.lines().try_collect::<Vec<_>>().await?.len(), 20, "{pod}");
        let mut forwarder = world.api::<Pod>().portforward(pod, &[port]).await?;
        let mut stream = forwarder.take_stream(port).context("there is a stream")?;
        stream.write_all(b"there and back").await?;
        let mut back = [0; 14];
        stream.read_exact(&mut back).await?;
        assert_eq!(&back, b"there and back", "{pod}");
    }
    Ok(())
}

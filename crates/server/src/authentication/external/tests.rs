use super::*;
use crate::config::ExternalTokens;

/// External authenticators with one provider, which is not contacted.
fn external(directory: &std::path::Path) -> External {
    let path = directory.join("authentication.yaml");
    let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n\
                jwt: [{issuer: {url: 'https://issuer.example', audiences: [a]}, \
                claimMappings: {username: {claim: sub, prefix: ''}}}]\n";
    fs::write(&path, text).unwrap();
    let external_tokens = ExternalTokens { config: Some(path), ..ExternalTokens::default() };
    let config = Config { external_tokens, ..Config::ephemeral() };
    External::new(&config, Vec::new(), vec!["api".to_owned()], Dialers::direct()).unwrap()
}

/// The token's issuer may be one that the new configuration no longer has.
#[test]
fn a_token_that_an_old_configuration_verifies_is_not_cached_in_the_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let external = external(directory.path());
    let audiences = ["api".to_owned()];
    let old = external.providers.load_full();
    let verified = |providers: &Providers| {
        let user = Arc::new(User::anonymous());
        let (key, until) = (external.cache_key("token", &audiences), Instant::now() + TTL);
        providers.verified.put(key, Authenticated::new(user, audiences.to_vec()), until);
    };
    verified(&old);
    assert!(external.cached("token", &audiences).is_some());

    external.providers.store(Arc::new(Providers::new(old.list.clone())));
    verified(&old);
    assert!(external.cached("token", &audiences).is_none());
}

//! The keys of an OpenID provider (RFC 7517), and their signature algorithms.

use aws_lc_rs::signature::{
    self, EcdsaVerificationAlgorithm, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pintle_value::{Value, json};

/// The maximum number of keys of a provider.
const KEYS_MAX: usize = 256;

/// An allowed signature algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    Es512,
}

/// The verification of an algorithm.
enum Verification {
    Rsa(&'static RsaParameters),
    /// The name of the curve in keys.
    Curve(&'static str, &'static EcdsaVerificationAlgorithm),
}

impl Algorithm {
    /// All algorithms by name.
    pub const ALL: [(&'static str, Self); 9] = [
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("ES512", Self::Es512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
    ];

    /// The algorithm of a name (RFC 7518, section 3.1).
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, algorithm)| algorithm)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(_, algorithm)| *algorithm == self);
        named.map_or("", |(name, _)| name)
    }

    const fn verification(self) -> Verification {
        match self {
            Self::Rs256 => Verification::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Verification::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Verification::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Verification::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Verification::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Verification::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
            Self::Es256 => Verification::Curve("P-256", &signature::ECDSA_P256_SHA256_FIXED),
            Self::Es384 => Verification::Curve("P-384", &signature::ECDSA_P384_SHA384_FIXED),
            Self::Es512 => Verification::Curve("P-521", &signature::ECDSA_P521_SHA512_FIXED),
        }
    }
}

/// The keys of a provider.
#[derive(Debug, Default)]
pub struct KeySet(Vec<WebKey>);

#[derive(Debug)]
struct WebKey {
    /// `""` if it has none.
    id: String,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    /// The curve's name, and the uncompressed point.
    Curve(String, Vec<u8>),
}

impl KeySet {
    /// Parses a JSON Web Key Set. Keys of other types are dropped, as no algorithm uses them.
    ///
    /// # Errors
    /// The set is invalid, or a key of a known type in it is.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let set = json::parse(bytes).map_err(|why| why.to_string())?;
        let listed = set.get("keys").and_then(Value::as_array).unwrap_or_default();
        if listed.len() > KEYS_MAX {
            return Err(format!("there are {} keys, {KEYS_MAX} at most are read", listed.len()));
        }
        let keys = listed.iter().filter_map(|key| WebKey::read(key).transpose());
        keys.collect::<Result<_, _>>().map(Self)
    }

    /// Whether one of the keys signed a message. A token without a key ID may be signed by any.
    pub(super) fn has_signed(
        &self,
        (algorithm, key_id): (Algorithm, &str),
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let mut keys = self.0.iter().filter(|key| key_id.is_empty() || key.id == key_id);
        keys.any(|key| key.material.verifies(algorithm, message, signature))
    }
}

impl WebKey {
    fn read(key: &Value) -> Result<Option<Self>, String> {
        let text = |member: &str| key.str_at(&[member]).unwrap_or_default();
        let number = |member: &str| {
            let decoded = URL_SAFE_NO_PAD.decode(text(member)).unwrap_or_default();
            let zeros = decoded.iter().take_while(|byte| **byte == 0).count();
            let plain = decoded.get(zeros..).unwrap_or_default().to_vec();
            match plain.is_empty() {
                true => Err(format!("the key {:?} has no {member}", text("kid"))),
                false => Ok(plain),
            }
        };
        let material = match text("kty") {
            "RSA" => Material::Rsa(RsaPublicKeyComponents { n: number("n")?, e: number("e")? }),
            "EC" => {
                let curve = text("crv");
                let length = match curve {
                    "P-256" => 32,
                    "P-384" => 48,
                    "P-521" => 66,
                    _ => return Ok(None),
                };
                let mut point = vec![4];
                for coordinate in [number("x")?, number("y")?] {
                    let padding = usize::checked_sub(length, coordinate.len());
                    let padding = padding.ok_or("a coordinate is longer than its curve allows")?;
                    point.extend(std::iter::repeat_n(0, padding));
                    point.extend(coordinate);
                }
                Material::Curve(curve.to_owned(), point)
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { id: text("kid").to_owned(), material }))
    }
}

impl Material {
    fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm.verification()) {
            (Self::Rsa(key), Verification::Rsa(parameters)) => {
                key.verify(parameters, message, signature).is_ok()
            }
            (Self::Curve(curve, point), Verification::Curve(of, algorithm)) => {
                let key = UnparsedPublicKey::new(algorithm, point);
                curve == of && key.verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

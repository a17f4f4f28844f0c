//! Why TLS failed, as the text that reports print.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, OtherError, PeerIncompatible};

use super::verify::SelfSigned;

/// Why a handshake, or what follows it, failed.
pub(super) fn of(error: &Error) -> &'static str {
    match error {
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => NOT_TLS,
        Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => "protocol version: none in common",
        Error::InvalidMessage(_) => "the server's message cannot be read",
        Error::PeerIncompatible(
            PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::Tls13RequiredForQuic,
        ) => "protocol version: none in common",
        Error::PeerIncompatible(_) => "nothing in common with the server's TLS",
        Error::PeerMisbehaved(_) | Error::InappropriateMessage { .. } => {
            "the server violated the TLS protocol"
        }
        Error::InappropriateHandshakeMessage { .. } => "the server violated the TLS protocol",
        Error::NoCertificatesPresented => "the server sent no certificate",
        Error::DecryptError => "a message could not be decrypted",
        Error::PeerSentOversizedRecord => "a record exceeds the limit of TLS",
        Error::NoApplicationProtocol => "ALPN: no protocol in common",
        Error::InvalidCertRevocationList(_) => "certificate: revocation list",
        _ => "TLS failed on this side",
    }
}

pub(super) const NOT_TLS: &str = "the server does not speak TLS on this port";

fn of_certificate(error: &CertificateError) -> &'static str {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "certificate expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate not yet valid"
        }
        CertificateError::UnknownIssuer => "certificate from an unknown issuer",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "certificate for another name"
        }
        CertificateError::Revoked => "certificate revoked",
        CertificateError::BadSignature => "certificate signature is invalid",
        CertificateError::BadEncoding => "certificate cannot be read",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate for another purpose"
        }
        CertificateError::UnhandledCriticalExtension => "certificate with an unknown critical extension",
        CertificateError::Other(OtherError(other)) if other.is::<SelfSigned>() => {
            "self-signed certificate; give it with --cacert, or use -k"
        }
        CertificateError::Other(_) => {
            "an authority's certificate, or one that is malformed, used as the server's"
        }
        _ => "certificate not acceptable",
    }
}

fn of_alert(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::HandshakeFailure => "alert received: handshake failure",
        AlertDescription::ProtocolVersion => "alert received: protocol version",
        AlertDescription::UnrecognisedName => "alert received: unrecognized name",
        AlertDescription::NoApplicationProtocol => "alert received: no application protocol",
        AlertDescription::CertificateRequired => "alert received: certificate required",
        AlertDescription::BadCertificate => "alert received: bad certificate",
        AlertDescription::UnsupportedCertificate => "alert received: unsupported certificate",
        AlertDescription::CertificateExpired => "alert received: certificate expired",
        AlertDescription::CertificateRevoked => "alert received: certificate revoked",
        AlertDescription::CertificateUnknown => "alert received: certificate unknown",
        AlertDescription::UnknownCA => "alert received: unknown authority",
        AlertDescription::AccessDenied => "alert received: access denied",
        AlertDescription::InternalError => "alert received: internal error",
        AlertDescription::InsufficientSecurity => "alert received: insufficient security",
        AlertDescription::DecryptError => "alert received: decrypt error",
        AlertDescription::DecodeError => "alert received: decode error",
        AlertDescription::IllegalParameter => "alert received: illegal parameter",
        AlertDescription::UnexpectedMessage => "alert received: unexpected message",
        AlertDescription::BadRecordMac => "alert received: bad record",
        AlertDescription::UserCanceled => "alert received: cancelled",
        _ => "alert received",
    }
}

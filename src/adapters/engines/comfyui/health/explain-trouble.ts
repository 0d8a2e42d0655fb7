/**
 * Why a server cannot be used, in words that say what to do. They stand in the log, in the banner of a start, where a job says why
 * it waits, and on the page of engines.
 */
import { CallError } from '../wire/comfy-http.ts'

const MEANINGS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens at this address: start ComfyUI there, with --listen if it is another machine',
  ENOTFOUND: 'no machine is known by this name',
  EAI_AGAIN: 'the name could not be looked up: the DNS server does not answer',
  EHOSTUNREACH: 'no way leads to this machine',
  EHOSTDOWN: 'this machine is down',
  ENETUNREACH: 'no way leads to its network',
  UND_ERR_CONNECT_TIMEOUT: 'this machine does not answer: check its address and firewall',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS: write http:// instead of https://',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS: write http:// instead of https://',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ...Object.fromEntries(
    [
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    ].map((code) => [code, 'nobody here knows who signed its certificate: name the signer in NODE_EXTRA_CA_CERTS']),
  ),
}

const NO_COMFYUI = 'what answers at this address is not a ComfyUI: check its host, port and path'

export function explainTrouble(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const meaning = error instanceof CallError ? meaningOf(error) : undefined
  return meaning === undefined ? message : `${message}: ${meaning}`
}

function meaningOf({ fault, status, cause }: CallError): string | undefined {
  if (fault === 'malformed') return NO_COMFYUI
  if (status !== null) return meaningOfStatus(status)
  const first = cause instanceof AggregateError ? cause.errors[0] : cause
  return MEANINGS[codeOf(first)] ?? MEANINGS[codeOf((first as Error | undefined)?.cause)]
}

function meaningOfStatus(status: number): string | undefined {
  if (status === 401)
    return 'it wants a user and a password: write them into its address, http://user:password@host:port'
  if (status === 403) return 'it, or a proxy before it, does not let this service in'
  if (status < 500) return NO_COMFYUI
  return status < 502 ? undefined : 'a proxy answers, and no ComfyUI behind it'
}

function codeOf(error: unknown): string {
  return (error as { code?: string } | null | undefined)?.code ?? ''
}

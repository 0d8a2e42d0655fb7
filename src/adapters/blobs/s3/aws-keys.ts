/**
 * Keys from where programs on Amazon's machines get theirs: the environment, a profile, a web identity, the container or the
 * machine. The library looks in all of these places and reads the `AWS_…` variables by itself; it is loaded only where no keys are
 * configured. When keys are renewed is decided in bucket-keys.ts.
 */
import type { Log } from '../../../../lib/log.ts'
import type { BucketKeys } from './bucket-keys.ts'
import { S3Error } from './s3-error.ts'

const CONNECT_MS = 3_000
const ANSWER_MS = 10_000
const FILE_FAULTS = ['ENOENT', 'EACCES', 'EISDIR']

export function createAwsKeys(log: Pick<Log, 'warn'>): () => Promise<BucketKeys> {
  // Left to itself the library writes to the terminal.
  const ignore = () => {}
  const warn = (said: unknown) =>
    log.warn({ reason: String(said).slice(0, 200) }, 'a remark about the keys of the bucket')
  const logger = { trace: ignore, debug: ignore, info: ignore, warn, error: warn }
  const requestHandler = { connectionTimeout: CONNECT_MS, requestTimeout: ANSWER_MS, throwOnRequestTimeout: true }
  const options = { logger, clientConfig: { requestHandler } }

  return async () => {
    const { defaultProvider } = await import('@aws-sdk/credential-provider-node')
    try {
      const { accessKeyId, secretAccessKey, sessionToken, expiration } = await defaultProvider(options)()
      return { id: accessKeyId, secret: secretAccessKey, token: sessionToken ?? null, expiresAt: expiration ?? null }
    } catch (error) {
      throw toKeysError(error)
    }
  }
}

interface ProviderFault extends Error {
  readonly code?: unknown
  readonly $metadata?: { readonly httpStatusCode?: number }
}

/** Whoever was asked and said no will say so again; whoever could not be asked may answer later. */
function toKeysError(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return thrown
  const fault: ProviderFault = thrown
  const message = `no keys of the bucket: ${fault.name}: ${fault.message.split('\n')[0]?.slice(0, 200)}`
  const toError = (code: string) => new S3Error(message, { status: null, code, cause: fault })
  if (/from any providers/.test(fault.message)) return toError('no_keys')
  const status = fault.$metadata?.httpStatusCode ?? 0
  const isRefused = fault.name === 'CredentialsProviderError' || (status >= 400 && status < 500)
  return toError(isRefused || FILE_FAULTS.includes(String(fault.code)) ? 'keys_refused' : 'keys')
}

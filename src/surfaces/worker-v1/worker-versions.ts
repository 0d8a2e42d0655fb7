/** Which versions of the worker protocol this program speaks: its own and the one before, so that nodes and workers need not be upgraded at once. */
import type { IncomingMessage } from 'node:http'
import { UpgradeRequired } from './worker-errors.ts'
import { VERSION_HEADER } from './worker-operation.ts'

const OWN_VERSION = 1
/** There is none before the first. */
export const PROTOCOL_VERSIONS: readonly number[] = [OWN_VERSION - 1, OWN_VERSION].filter((version) => version > 0)

/** Throws UpgradeRequired. */
export function mustSpeak(request: IncomingMessage, spoken: readonly number[]): void {
  const asked = request.headers[VERSION_HEADER]
  if (typeof asked === 'string' && /^\d{1,4}$/.test(asked) && spoken.includes(Number(asked))) return
  const newest = Math.max(...spoken)
  const isOlder = typeof asked === 'string' && Number(asked) < newest
  throw new UpgradeRequired(
    'version_unsupported',
    `this node speaks version ${spoken.join(' and ')} of the worker protocol; upgrade ${isOlder ? 'the worker' : 'the service first'}`,
    { protocol_versions: spoken },
  )
}

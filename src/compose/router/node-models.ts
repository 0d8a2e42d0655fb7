/** Runs partner models for nodes of workflows, through the router and with the key that the job brought. */

import { createUuidV7 } from '../../../lib/ids.ts'
import { createReadHostedMedia } from '../../adapters/providers/hosting/read-hosted-media.ts'
import type { Authenticate } from '../../domain/accounts/caller.ts'
import type { ContentSigner } from '../../domain/assets/signed-url.ts'
import type { NodeModels } from '../../domain/engine/model-port.ts'
import { type CallBody, readCallBody } from '../../domain/models/calls/call-store.ts'
import { createNodeModels } from '../../domain/models/workflows/node-models.ts'
import type { AssetActions } from '../asset-actions.ts'
import type { OpenedBlobs } from '../storage/open-blobs.ts'
import type { RouterActions } from './router-actions.ts'

export interface NodeParts {
  readonly authenticate: Authenticate
  /** Authenticates without counting a request. */
  readonly identify: Authenticate
  /** Words of branded names. */
  readonly brands: readonly string[]
  /** The base of absolute addresses, since no request provides one here. */
  readonly baseUrl: string
}

interface MediaParts extends NodeParts {
  readonly opened: OpenedBlobs
  readonly assets: Pick<AssetActions, 'openContent'>
  readonly signer: Pick<ContentSigner, 'verify'>
}

const READ_MS = 60_000

/** Members of `extra_data` that hold the key of a job's account. */
export function toKeyNames(brands: readonly string[]): string[] {
  return brands.map((brand) => `api_key_${brand.toLowerCase()}_org`)
}

export function openNodeModels(parts: MediaParts, { access, runModel, live }: RouterActions): NodeModels {
  const readHosted = createReadHostedMedia({ verify: parts.signer.verify, openContent: parts.assets.openContent })
  return createNodeModels({
    access,
    runModel,
    isStopping: () => live.isClosing,
    authenticate: parts.authenticate,
    identify: parts.identify,
    keyNames: toKeyNames(parts.brands),
    readBody: Object.assign((body: CallBody) => readCallBody(parts.opened.blobs, body), { hosted }),
    baseUrl: parts.baseUrl,
    newRequestId: createUuidV7(Date.now),
  })

  async function hosted(url: string, maxBytes: number): Promise<Buffer | null> {
    const parsed = URL.parse(url)
    if (parsed === null) return null
    return readHosted(parsed, { maxBytes, signal: AbortSignal.timeout(READ_MS) })
  }
}

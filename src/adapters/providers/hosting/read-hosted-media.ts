/** Reads pictures that an input names by a signed address of this service directly from our storage. */
import type { OpenContent } from '../../../domain/assets/asset-content.ts'
import { CONTENT_PATH, type VerifyContentUrl } from '../../../domain/assets/signed-url.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { ReadHostedMedia } from '../declarative/request/build-request.ts'

interface HostedMediaDeps {
  readonly verify: VerifyContentUrl
  readonly openContent: OpenContent
}

export function createReadHostedMedia({ verify, openContent }: HostedMediaDeps): ReadHostedMedia {
  return async function readHostedMedia(url, { maxBytes, signal }) {
    // The signature proves that the address is ours, so the host is not checked: the service may have several names.
    const assetId = new RegExp(`${CONTENT_PATH}/([0-9a-f-]{36})$`).exec(url.pathname)?.[1]
    if (assetId === undefined) return null
    try {
      const grant = verify(assetId, url.search.slice(1))
      const { asset, open } = await openContent(grant.accountId, assetId)
      if (asset.sizeBytes > maxBytes) return null
      const chunks: Buffer[] = []
      for await (const chunk of await open()) {
        signal.throwIfAborted()
        chunks.push(chunk as Buffer)
      }
      return Buffer.concat(chunks)
    } catch (error) {
      if (error instanceof ServiceError) return null
      throw error
    }
  }
}

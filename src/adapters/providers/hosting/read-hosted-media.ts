/** Pictures that an input names by an address of ours: read from our own storage, by the leave that the address carries. */
import type { OpenContent } from '../../../domain/assets/content.ts'
import { CONTENT_PATH, type VerifyContentUrl } from '../../../domain/assets/signed-url.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { ReadHostedMedia } from '../declarative/request/input-media.ts'

export interface HostedMediaDeps {
  readonly verify: VerifyContentUrl
  readonly openContent: OpenContent
}

export function createReadHostedMedia({ verify, openContent }: HostedMediaDeps): ReadHostedMedia {
  return async function readHostedMedia(url, { maxBytes, signal }) {
    // The signature proves that it is ours, so the host need not be looked at: it may be any name of this service.
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

/** What a joined machine makes releases from, read from the service; and which of them may still be needed. */
import { Readable } from 'node:stream'
import type { FindReleaseParts, ReleaseParts } from '../../domain/environments/bring-release.ts'
import { BuildFailure } from '../../domain/environments/builder.ts'
import { targetText } from '../../domain/environments/definition.ts'
import { isStoreAway, ServiceError } from '../../domain/errors.ts'
import type { GatewayClient } from './gateway-client.ts'
import { readOn } from './remote-files.ts'

interface RemoteReleases {
  readonly find: FindReleaseParts
  /** Whether a deployment serves a release or may go back to it. */
  isUsed(releaseId: string): Promise<boolean>
}

export function createRemoteReleases(client: Pick<GatewayClient, 'call' | 'open'>): RemoteReleases {
  const pathOf = (releaseId: string) => `/releases/${encodeURIComponent(releaseId)}`

  async function openBlob(releaseId: string, blobId: string): Promise<NodeJS.ReadableStream> {
    const path = `${pathOf(releaseId)}/blobs/${encodeURIComponent(blobId)}`
    return Readable.from(asFailures(readOn(client, { path }, null), blobId))
  }

  return {
    async find(_accountId, releaseId, target) {
      const path = `${pathOf(releaseId)}?target=${encodeURIComponent(targetText(target))}`
      const told = await client
        .call<Pick<ReleaseParts, 'definition' | 'lock'>>({ method: 'GET', path })
        .catch((error: unknown) => {
          if (error instanceof ServiceError && error.refusal === 'not_found') return null
          throw error
        })
      return told && { ...told, openBlob: (blobId) => openBlob(releaseId, blobId) }
    },
    async isUsed(releaseId) {
      const answer = await client.call<{ used: boolean }>({ method: 'GET', path: `${pathOf(releaseId)}/use` })
      return answer?.used ?? true
    },
  }
}

/** A build that cannot read a file says so, and what to do. */
export async function* asFailures(source: AsyncIterable<Uint8Array>, blobId: string): AsyncGenerator<Uint8Array> {
  try {
    yield* source
  } catch (error) {
    if (isStoreAway(error))
      throw new BuildFailure('freeze', `the service stopped sending the uploaded file ${blobId}; try again`)
    if (!(error instanceof ServiceError)) throw error
    throw new BuildFailure('freeze', `the uploaded file ${blobId} is gone; upload it again and push the build`)
  }
}

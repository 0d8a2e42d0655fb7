/** Releases that wait to be made, taken from the service and written to it. One is made at a time. */
import { Readable } from 'node:stream'
import type { ArtifactLease } from '../../domain/environments/artifact-queue.ts'
import type { ClaimedBuild, OneBuildDeps } from '../../domain/environments/build-one.ts'
import { type BaseImage, BuildFailure } from '../../domain/environments/builder.ts'
import { type BuildTarget, readTarget, targetText } from '../../domain/environments/definition.ts'
import type { GatewayClient } from './gateway-client.ts'
import { readOn } from './remote-files.ts'
import { asFailures } from './remote-releases.ts'

interface BuildFields {
  readonly artifact_id: string
  readonly target: string
  readonly release_id: string
  readonly definition: ClaimedBuild['release']['definition']
  readonly lock: ClaimedBuild['lock']
  readonly links: Readonly<Record<string, string>>
  readonly quota: {
    readonly max_bytes: number
    readonly held_bytes: number
    readonly held_models: readonly { readonly sha256: string; readonly size_bytes: number }[]
  }
}

interface RemoteBuild extends Pick<OneBuildDeps, 'quotaOf' | 'openBlob'> {
  readonly claimed: ClaimedBuild
}

interface RemoteBuilds {
  /** null: nothing waits for these platforms. */
  claim(leaseId: string, targets: readonly BuildTarget[]): Promise<RemoteBuild | null>
  readonly queue: OneBuildDeps['queue']
}

/** Less than the service takes at once; more of a log is written in several parts. */
const MAX_TEXT = 500_000

export function createRemoteBuilds(client: Pick<GatewayClient, 'call' | 'open'>): RemoteBuilds {
  async function ask({ artifactId, leaseId }: ArtifactLease, fields: object) {
    const path = `/builds/${encodeURIComponent(artifactId)}/moves`
    const json = { lease_id: leaseId, ...fields }
    return client.call<{ readonly held: boolean; readonly passed_on?: boolean }>({ method: 'POST', path, json })
  }

  async function move(lease: ArtifactLease, fields: object): Promise<boolean> {
    return (await ask(lease, fields))?.held === true
  }

  return {
    async claim(leaseId, targets) {
      const json = { lease_id: leaseId, targets: targets.map(targetText) }
      const told = await client.call<BuildFields>({ method: 'POST', path: '/builds/claims', json })
      return told && readBuild(client, told)
    },
    queue: {
      renew: (lease) => move(lease, { move: 'renew' }),
      async appendLog(lease, text) {
        for (let at = 0; at < text.length; at += MAX_TEXT)
          if (!(await move(lease, { move: 'log', text: text.slice(at, at + MAX_TEXT) }))) return false
        return true
      },
      noteLock: (lease, lock) => move(lease, { move: 'lock', lock }),
      succeed: (lease, { lock, archiveSha256, sizeBytes, classes }) =>
        move(lease, {
          ...{ move: 'succeed', lock },
          built: { archive_sha256: archiveSha256, size_bytes: sizeBytes, classes },
        }),
      fail: (lease, reason) => move(lease, { move: 'fail', text: reason }),
      async passOn(lease, { reason }) {
        const answer = await ask(lease, { move: 'pass_on', text: reason })
        if (answer?.passed_on === true) return 'passed_on'
        return answer?.held === true ? 'failed' : 'lost'
      },
      giveBack: (lease) => move(lease, { move: 'give_back' }),
    },
  }
}

function readBuild(client: Pick<GatewayClient, 'open'> & Pick<GatewayClient, 'call'>, told: BuildFields): RemoteBuild {
  const { definition, lock, links, quota } = told
  const models = quota.held_models.map(({ sha256, size_bytes: sizeBytes }) => ({ sha256, sizeBytes }))
  return {
    claimed: {
      // Whose it is, is the service's business.
      release: { id: told.release_id, accountId: '', definition },
      artifact: { id: told.artifact_id, target: readTarget(told.target) },
      lock,
    },
    quotaOf: async () => ({
      maxBytes: quota.max_bytes,
      held: [{ releaseId: '', sizeBytes: quota.held_bytes, models }],
    }),
    async openBlob(_accountId, blobId) {
      const path = links[blobId]
      if (path === undefined) throw new BuildFailure('freeze', `the uploaded file ${blobId} is not named by this build`)
      return Readable.from(asFailures(readOn(client, { path, isLink: true }, null), blobId))
    },
  }
}

export function writeBaseImages(images: readonly BaseImage[]): readonly object[] {
  return images.map(({ targets, isDefault, ...image }) => ({
    ...image,
    targets: targets.map(targetText),
    is_default: isDefault,
  }))
}

/** Builds, releases and uploaded files of accounts, and the releases that can be deployed here. */
import { isIP } from 'node:net'
import type { Clock } from '../../lib/clock.ts'
import { createUuidV7 } from '../../lib/ids.ts'
import { isPublicAddress, toLiteral } from '../../lib/outbound/network.ts'
import type { BuildsConfig } from '../config/blocks/jobs-config.ts'
import type { Config } from '../config/config.ts'
import type { SigningKey } from '../domain/assets/signed-url.ts'
import type { EngineDirectory } from '../domain/engine/directory/engine-directory.ts'
import { createBlobLinks } from '../domain/environments/blob-links.ts'
import { whyNoEngine } from '../domain/environments/fit.ts'
import { createManageBlobs } from '../domain/environments/manage-blobs.ts'
import { createManageBuilds } from '../domain/environments/manage-builds.ts'
import { createResolveReferences } from '../domain/environments/resolve.ts'
import type { Store } from '../domain/store.ts'
import { createFindStartable } from './engines/copy-engines.ts'
import type { JoinedMachines } from './engines/joined-machines.ts'
import { NO_RELEASES, type ReleasesHere } from './engines/open-released.ts'
import type { OpenedBuilder } from './open-builder.ts'
import type { OpenedBlobs } from './storage/open-blobs.ts'

interface BuildParts {
  readonly store: Pick<Store, 'builds' | 'buildBlobs' | 'artifacts' | 'released' | 'audited' | 'assets'>
  readonly opened: Pick<OpenedBlobs, 'blobs'>
  readonly signingKeys: readonly SigningKey[]
  readonly directory: Pick<EngineDirectory, 'availability'>
  readonly building: Pick<OpenedBuilder, 'registry'>
  readonly clock: Clock
}

export type OpenedBuilds = ReturnType<typeof openBuilds>

export function openBuilds({ builds, builder }: Pick<Config, 'builds' | 'builder'>, parts: BuildParts) {
  const { allowed, bounds } = builds
  const origins = builder?.origins ?? []
  const { store, signingKeys, directory, clock } = parts
  const { blobs } = parts.opened
  const isKnownClass = (classType: string) => directory.availability().classes.has(classType)
  const usersOf = async (releaseIds: readonly string[]) => {
    const uses = await store.released.usesOf(releaseIds)
    return [...new Set(uses.map(({ name, deploymentId }) => `${name} (${deploymentId})`))]
  }
  const mayBuild = createMayBuild(allowed)
  const links = createBlobLinks(signingKeys, clock)
  const newId = createUuidV7(() => clock.now().getTime())
  const common = { mayBuild, newId, clock, audited: (entry: Parameters<Store['audited']>[0]) => store.audited(entry) }
  return {
    builds: createManageBuilds({
      ...{ ...common, store: store.builds, artifacts: store.artifacts, usersOf, bounds },
      origins,
      whyNotFetched: (address) => whyNotFetched(address, origins),
    }),
    blobs: createManageBlobs({
      ...{ ...common, store: store.buildBlobs, blobs, assets: store.assets, links },
      bounds: bounds.blobs,
    }),
    resolve: createResolveReferences({
      store: store.builds,
      mayBuild,
      isKnownClass,
      registry: parts.building.registry,
    }),
    mayBuild,
    signRead: (blobId: string, expiresAt: Date) => links.sign(blobId, 'get', expiresAt),
  }
}

function createMayBuild(allowed: BuildsConfig['allowed']): (accountId: string) => boolean {
  return (accountId) => allowed === 'all' || allowed.includes(accountId)
}

/**
 * What deployments of this process can be made of: the releases that accounts had built, in the folders of its builder. A service that is
 * one process needs none of its own where machines may join; beside others, those with a builder look after deployments.
 */
export function openReleasesHere(
  { allowed }: BuildsConfig,
  {
    store,
    building: { builder, bring, cuda },
    machines,
  }: {
    readonly store: Pick<Store, 'builds' | 'isExclusive'>
    readonly building: OpenedBuilder
    /** Those that joined; null: none can. */
    readonly machines: Pick<JoinedMachines, 'list'> | null
  },
): ReleasesHere {
  const isPossible = builder !== null || (machines !== null && store.isExclusive)
  if (!isPossible || allowed.length === 0) return NO_RELEASES
  const targets = builder?.targets ?? []
  return {
    source: {
      async find(accountId, releaseId) {
        const release = await store.builds.findRelease(accountId, releaseId)
        if (release === null) return null
        const { id, buildId, version, artifacts } = release
        const sizeBytes = artifacts.find(({ status }) => status === 'ready')?.sizeBytes ?? null
        const joined = (await machines?.list()) ?? []
        // Why not is told of the first one.
        const all = builder === null ? [...joined, NO_MACHINE] : [{ targets, cuda }, ...joined]
        const whyNot = (gpuClass: string) => {
          const reasons = all.map((machine) => whyNoEngine(artifacts, gpuClass, machine))
          return reasons.includes(null) ? null : (reasons[0] ?? null)
        }
        return { id, buildId, version, whyNot, sizeBytes }
      },
    },
    find: builder === null ? NO_RELEASES.find : createFindStartable(builder),
    bring: bring ?? NO_RELEASES.bring,
    mayDeploy: createMayBuild(allowed),
    targets,
  }
}

const NO_MACHINE = { targets: [], cuda: null }

/** What can be told without a lookup; names are looked up when they are fetched. */
function whyNotFetched(address: string, origins: readonly string[]): string | null {
  const { hostname, origin } = new URL(address)
  if (origins.includes(origin)) return null
  const literal = toLiteral(hostname)
  const isInner = isIP(literal) !== 0 ? !isPublicAddress(literal) : /(?:^|\.)localhost$/i.test(hostname)
  return isInner ? 'leads to no public address, and is not fetched; upload the model instead' : null
}

/** Builds, releases and uploaded files in the words of the official command line. */

import {
  type Build,
  type BuildSummary,
  isDeployable,
  type ReleaseSummary,
  type ReleaseWithArtifacts,
  releaseStatus,
} from '../../domain/environments/build.ts'
import type { StoredBuildBlob } from '../../domain/environments/build-blob-store.ts'

export function toBuildView(build: Build) {
  const { id, accountId: workspaceId, name, description, definition, createdBy, createdAt, updatedAt } = build
  return {
    ...{ id, workspaceId, name, description: description ?? '', definition, createdBy },
    ...{ createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() },
  }
}

export function toBuildRow(build: BuildSummary) {
  const { id, name, description, createdBy, modelCount, packCount, blobBytes, createdAt, updatedAt } = build
  return {
    ...{ id, name, description: description ?? '', createdBy },
    ...{ numModels: modelCount, numCustomNodes: packCount, sizeBytes: blobBytes },
    ...{ createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() },
  }
}

export function toReleaseRow(release: ReleaseSummary) {
  const { id, buildId, version, artifacts, createdAt } = release
  return {
    ...{ id, buildId, version, status: releaseStatus(artifacts), deployable: isDeployable(release) },
    createdAt: createdAt.toISOString(),
  }
}

const STATUSES = ['queued', 'building', 'ready', 'failed'] as const

/** `waiting`: why artifacts are not begun, by their ids. */
export function toReleaseView(release: ReleaseWithArtifacts, waiting: ReadonlyMap<string, string>) {
  const { artifacts } = release
  return {
    ...toReleaseRow(release),
    artifactCounts: Object.fromEntries(
      STATUSES.map((status) => [status, artifacts.filter((each) => each.status === status).length]),
    ),
    artifacts: artifacts.map(
      ({ id, target, status, failureReason, lock, archiveSha256, sizeBytes, classes, startedAt, finishedAt }) => ({
        ...{ id, os: target.os, gpu: target.gpu, accelVariant: lock?.torch.variant ?? null, status, failureReason },
        ...{ waitingReason: waiting.get(id) ?? null, archiveRef: null, archiveSha256, sizeBytes, classes, lock },
        startedAt: startedAt?.toISOString() ?? null,
        finishedAt: finishedAt?.toISOString() ?? null,
      }),
    ),
  }
}

export function toBlobRow({ id, filename, kind, sha256, sizeBytes, createdAt }: StoredBuildBlob) {
  return { blobId: id, filename, kind, sha256, sizeBytes, createdAt: createdAt.toISOString() }
}

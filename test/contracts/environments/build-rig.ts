/** An account with builds, and the few steps that tests of builds take. */
import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import type { BlobKind } from '../../../src/domain/environments/blob.ts'
import { type Build, contentHashOf } from '../../../src/domain/environments/build.ts'
import type { BuildDefinition, BuildTarget } from '../../../src/domain/environments/definition.ts'
import type { ReleaseLock } from '../../../src/domain/environments/lock.ts'
import { at, hashOf, START, type WholeStoreUnderTest } from '../store-under-test.ts'

export const CPU: BuildTarget = { os: 'linux', gpu: 'cpu' }
export const NVIDIA: BuildTarget = { os: 'linux', gpu: 'nvidia' }

export const LOCK: ReleaseLock = {
  comfyui: { wanted: 'v0.3.40', commit: 'c'.repeat(40), sha256: 'd'.repeat(64) },
  python: '3.12',
  torch: { variant: 'cpu', version: null },
  packs: [],
  wheels: 'numpy==2.0.0 --hash=sha256:00\n',
  models: [],
}

export const BUILT = { lock: LOCK, archiveSha256: 'e'.repeat(64), sizeBytes: 4096, classes: { pack: ['Sharpen'] } }

export class Builds {
  readonly store: WholeStoreUnderTest
  readonly accountId = randomUUID()

  constructor(store: WholeStoreUnderTest) {
    this.store = store
  }

  /** `text` stands for its bytes. */
  async announce(text: string, { kind = 'model' as BlobKind, count = 100, bytes = 1e9, afterMs = 0 } = {}) {
    const outcome = await this.store.buildBlobs.announce(
      {
        ...{ id: `blob-${randomUUID()}`, accountId: this.accountId, kind, filename: `${text}.bin` },
        ...{ sha256: createHash('sha256').update(text).digest('hex'), sizeBytes: text.length, createdAt: at(afterMs) },
      },
      { count, bytes },
    )
    return outcome
  }

  async upload(text: string, { kind = 'model' as BlobKind, afterMs = 0 } = {}): Promise<string> {
    const announced = await this.announce(text, { kind, afterMs })
    assert.equal(announced.outcome, 'announced')
    assert.equal(await this.store.buildBlobs.complete(announced.blob.id, hashOf(text), at(afterMs)), true)
    return announced.blob.id
  }

  newBuild(definition: BuildDefinition = {}) {
    return {
      ...{ id: `bld-${randomUUID()}`, accountId: this.accountId, name: 'studio', description: null, definition },
      ...{ createdBy: 'key', createdAt: START },
    }
  }

  async build(definition: BuildDefinition = {}): Promise<Build> {
    const saved = await this.store.builds.create(this.newBuild(definition), 100)
    assert.equal(saved.outcome, 'saved')
    return saved.build
  }

  async save(build: Build, definition: BuildDefinition): Promise<Build> {
    const change = { definition, name: null, description: null, expected: build.updatedAt, at: START }
    const saved = await this.store.builds.change(this.accountId, build.id, change)
    assert.equal(saved.outcome, 'saved')
    return saved.build
  }

  tryCut(build: Build, targets: readonly BuildTarget[] = [CPU], { releases = 100, unfinished = 100 } = {}) {
    return this.store.builds.cut({
      ...{ accountId: this.accountId, buildId: build.id, updatedAt: build.updatedAt, targets, createdBy: 'key' },
      ...{ contentHash: contentHashOf(build.definition), at: START, limits: { releases, unfinished } },
    })
  }

  async cut(build: Build, targets: readonly BuildTarget[] = [CPU]) {
    const cut = await this.tryCut(build, targets)
    assert.equal(cut.outcome, 'cut')
    return cut
  }

  release(id: string) {
    return this.store.builds.findRelease(this.accountId, id)
  }
}

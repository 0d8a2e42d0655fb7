/** Builds, releases and uploads of another account look like those that never were. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before } from 'node:test'
import { testIsolation } from '../../../../test/isolation/run-matrix.ts'
import type { IsolationCase, IsolationSurface } from '../../../../test/isolation/surface.ts'
import { openWorld, type World } from '../../../../test/isolation/world.ts'

const BUILDER = '/builder/v1'
const TARGET = { os: 'linux', gpu: 'cpu' }
const CHANGE = JSON.stringify({ definition: {}, expectedUpdatedAt: null })

const surface: IsolationSurface = {
  name: 'builder-v1',
  spec: 'spec/builder-v1.openapi.json',
  // What resolves names tells the names back; builds.test.ts looks into the answers.
  harmless: ['getBuilderOpenapi', 'createBuild', 'announceBlob', 'resolveSnapshot', 'resolveModels', 'resolveWorkflow'],
  lists: [
    { operation: 'listBuilds', path: `${BUILDER}/builds` },
    { operation: 'listBlobs', path: `${BUILDER}/blobs` },
    { operation: 'listBaseImages', path: `${BUILDER}/base-images` },
    { operation: 'listBuildTargets', path: `${BUILDER}/build-targets` },
    { operation: 'listModelDirectories', path: `${BUILDER}/model-directories` },
  ],
  async prepare({ other }) {
    const post = async (path: string, body: object) => {
      const { status, json, text } = await other.call(path, { method: 'POST', body: JSON.stringify(body) })
      assert.equal(status, 201, text)
      return json
    }
    const bytes = Buffer.from('theirs')
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const file = { kind: 'model', filename: 'theirs.safetensors', sha256, sizeBytes: bytes.length }
    const { blobId, uploadUrl } = await post(`${BUILDER}/blobs`, file)
    const { pathname, search } = new URL(uploadUrl)
    assert.equal((await other.call(pathname + search, { method: 'PUT', body: bytes })).status, 200)
    const model = {
      type: 'vae',
      filename: 'theirs.safetensors',
      sourceUri: 'https://example.com/a.safetensors',
      sha256,
    }
    const definition = { baseComfyVersion: 'v0.3.40', models: [model] }
    const { id } = await post(`${BUILDER}/builds`, { name: 'theirs', definition })
    const { releaseId } = await post(`${BUILDER}/builds/${id}/releases`, { targets: [TARGET] })
    const artifact = (await other.call(`${BUILDER}/releases/${releaseId}`)).json.artifacts[0].id as string
    const cut = JSON.stringify({ targets: [TARGET] })
    const named = (operation: string, method: string, path: (id: string) => string, own: string, body?: string) => {
      const unknown = own.replace(/[0-9a-f]{4}$/, 'ffff')
      const title = `${operation} of another account`
      const request = (of: string) => ({ method, path: path(of), ...(body !== undefined && { body }) })
      return { operation, title, foreign: request(own), unknown: request(unknown) } satisfies IsolationCase
    }
    const ofBuild =
      (rest = '') =>
      (build: string) =>
        `${BUILDER}/builds/${build}${rest}`
    const ofRelease =
      (rest = '') =>
      (release: string) =>
        `${BUILDER}/releases/${release}${rest}`
    return {
      cases: [
        named('getBuild', 'GET', ofBuild(), id),
        named('changeBuild', 'PATCH', ofBuild(), id, CHANGE),
        named('deleteBuild', 'DELETE', ofBuild(), id),
        named('validateBuild', 'POST', ofBuild('/validate'), id),
        named('createRelease', 'POST', ofBuild('/releases'), id, cut),
        named('listReleases', 'GET', ofBuild('/releases'), id),
        named('getRelease', 'GET', ofRelease(), releaseId),
        named('getReleaseLogs', 'GET', ofRelease('/logs?os=linux&gpu=cpu'), releaseId),
        named('getReleaseManifest', 'GET', ofRelease('/manifest'), releaseId),
        named('deleteRelease', 'DELETE', ofRelease(), releaseId),
        named('downloadArtifact', 'GET', (of) => `${BUILDER}/build-artifacts/${of}/download`, artifact),
        // An address that was signed for another file.
        named(
          'putBlob',
          'PUT',
          (of) => `/builder/blobs/${of}${search.replace(/signature=.{8}/, 'signature=AAAAAAAA')}`,
          blobId,
        ),
        named('readBlob', 'GET', (of) => `/builder/blobs/${of}${search}`, blobId),
      ],
      owned: [`${BUILDER}/builds`, `${BUILDER}/builds/${id}`, `${BUILDER}/releases/${releaseId}`, `${BUILDER}/blobs`],
    }
  },
}

let world: World
before(async () => {
  world = await openWorld()
})
after(() => world[Symbol.asyncDispose]())

testIsolation(surface, () => world)

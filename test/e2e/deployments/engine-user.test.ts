/** What accounts have built does not run as the one who runs the service, where the operator names another user. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { KEEPER } from '../../../lib/processes/kept-process.ts'
import { startShared } from '../../support/app/start-shared.ts'
import { createFakeReleases } from '../../support/deployments/fake-releases.ts'
import { deploy } from '../../support/deployments/released-app.ts'

const NOBODY = { uid: 65_534, gid: 65_534 }
const reach = ['-e', `require('node:fs').accessSync(${JSON.stringify(KEEPER)})`]
const canRun = process.getuid?.() === 0 && spawnSync(process.execPath, reach, NOBODY).status === 0
const skip = canRun ? false : 'run it as root, from a checkout that every user can read'

test('engines of a release run as the named user, with a home of their own', { skip }, async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'atelier-user-'))
  await chmod(folder, 0o755)
  const { here, add } = createFakeReleases(folder)
  const find: typeof here.find = async (id, gpuClass) => {
    const found = await here.find(id, gpuClass)
    return found === null ? null : { ...found, user: NOBODY }
  }
  try {
    await using app = await startShared({ releaseEngines: '1' }, { overrides: { releases: { ...here, find } } })
    const ana = await app.account('ana')
    const release = add({ version: 1, accountId: 'ana' })
    const script = '#!/bin/sh\necho "I am $(id -u):$(id -g) at $HOME, $USER$XDG_CACHE_HOME"\nexit 1\n'
    const python = path.join(folder, release.id, 'venv/bin/python')
    assert.match(await readFile(python, 'utf8'), /^#!\/bin\/sh/)
    await writeFile(python, script)
    const deployment = await deploy(ana, release.id)
    const { error } = await deployment.until(({ status }) => status === 'failed')
    assert.match(error, /I am 65534:65534 at \S*release-engines\/[\w.-]+,$/m)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
})

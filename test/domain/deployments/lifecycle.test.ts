import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDeploymentId } from '../../../src/domain/deployments/deployment.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { createLifecycleRig } from './memory-deployments.ts'

const DEMO = { id: 'demo', accountId: null, workers: 2, idleAfterMs: null }

async function refusalOf(act: () => unknown): Promise<string | null> {
  try {
    await act()
    return null
  } catch (error) {
    assert.ok(error instanceof ServiceError)
    return `${error.refusal} ${error.retryAfterSeconds ?? ''}`.trim()
  }
}

test('an id is one DNS label and none of the names that mean something else', () => {
  for (const id of ['a', 'demo', '9lives', 'a-b', 'x'.repeat(63)]) assert.ok(isDeploymentId(id), id)
  const wrong = [
    '',
    'A',
    '-a',
    'a-',
    'a.b',
    'a_b',
    'ä',
    'xn--caf',
    'x'.repeat(64),
    'default',
    'run',
    'stg',
    'admin',
    'a/b',
  ]
  for (const id of wrong) assert.ok(!isDeploymentId(id), id)
})

describe('a deployment', () => {
  test('takes no jobs until its workers are there, then takes them', async () => {
    const { deployments, lifecycle, switches, news } = await createLifecycleRig()
    switches.comeAtOnce = false
    await deployments.create(DEMO)
    await lifecycle.look()
    assert.deepEqual(news(), ['start demo 2'])
    assert.equal(await refusalOf(() => deployments.mustTakeJobs('demo')), 'deployment_not_ready 5')
    switches.comeAtOnce = true
    await lifecycle.look()
    assert.equal(deployments.find('demo')?.state, 'ready')
    assert.equal(await refusalOf(() => deployments.mustTakeJobs('demo')), null)
  })

  test('sleeps after its idle time and wakes when a job comes', async () => {
    const { clock, deployments, lifecycle, load, news } = await createLifecycleRig()
    await deployments.create(DEMO)
    await lifecycle.look()
    await lifecycle.look()
    clock.advance(59_000)
    await lifecycle.look()
    assert.deepEqual(news(), ['start demo 2'])
    clock.advance(1000)
    await lifecycle.look()
    assert.deepEqual(news(), ['stop demo'])
    assert.equal(await refusalOf(() => deployments.mustTakeJobs('demo')), null, 'it sleeps, and still takes jobs')
    load.set('demo', { queued: 1, running: 0 })
    await lifecycle.wake('demo')
    assert.deepEqual(news(), ['start demo 2'])
    load.set('demo', { queued: 0, running: 1 })
    clock.advance(3_600_000)
    await lifecycle.look()
    assert.deepEqual(news(), [], 'a run is no idleness, however long')
  })

  test('finishes what it has before it stops, and takes nothing new', async () => {
    const { deployments, lifecycle, load, news } = await createLifecycleRig()
    await deployments.create(DEMO)
    await lifecycle.look()
    news()
    load.set('demo', { queued: 1, running: 1 })
    await deployments.stop('demo', { now: false })
    await lifecycle.look()
    assert.equal(deployments.find('demo')?.state, 'draining')
    assert.equal(await refusalOf(() => deployments.mustTakeJobs('demo')), 'deployment_stopped')
    load.clear()
    await lifecycle.look()
    assert.equal(deployments.find('demo')?.state, 'stopped')
    assert.deepEqual(news(), ['stop demo'])
    assert.equal(await refusalOf(() => deployments.mustTakeJobs('demo')), 'deployment_stopped')
    await deployments.start('demo')
    await lifecycle.look()
    assert.equal(deployments.find('demo')?.state, 'ready')
  })

  test('that becomes ready while it is being stopped is stopped all the same', async () => {
    const { deployments, lifecycle } = await createLifecycleRig()
    await deployments.create(DEMO)
    const [, stopped] = await Promise.all([lifecycle.look(), deployments.stop('demo', { now: true })])
    assert.equal(stopped.state, 'stopped')
    await lifecycle.look()
    assert.equal(deployments.find('demo')?.state, 'stopped')
  })

  test('can be stopped at once, and the jobs that wait stay', async () => {
    const { deployments, lifecycle, load, news } = await createLifecycleRig()
    await deployments.create(DEMO)
    await lifecycle.look()
    news()
    load.set('demo', { queued: 3, running: 0 })
    await deployments.stop('demo', { now: true })
    await lifecycle.look()
    assert.deepEqual(news(), ['stop demo'])
    await lifecycle.wake('demo')
    assert.deepEqual(news(), [])
  })

  test('of one account does not exist for another, in the same words', async () => {
    const { deployments } = await createLifecycleRig()
    await deployments.create({ ...DEMO, accountId: 'mine' })
    await deployments.create({ ...DEMO, id: 'open' })
    assert.equal(deployments.findFor('mine', 'demo').id, 'demo')
    assert.equal(deployments.findFor('anybody', 'open').id, 'open')
    const words = ['demo', 'nowhere'].map((id) => {
      try {
        return deployments.findFor('other', id).id
      } catch (error) {
        return (error as Error).message
      }
    })
    assert.equal(words[0], words[1])
  })

  test('keeps its id to itself and its settings within bounds', async () => {
    const { deployments } = await createLifecycleRig()
    await deployments.create(DEMO)
    await assert.rejects(deployments.create(DEMO), /id is taken/)
    await assert.rejects(deployments.create({ ...DEMO, id: 'No' }), /one DNS label/)
    await assert.rejects(deployments.configure('demo', { workers: 5000 }), /workers must be/)
    await assert.rejects(deployments.configure('demo', { idleAfterMs: 1 }), /idle_after_ms must be/)
    await assert.rejects(deployments.start('nowhere'), /no deployment/)
    assert.equal((await deployments.configure('demo', { workers: 7 })).workers, 7)
  })
})

describe('without workers of our own', () => {
  test('the hooks are called while a deployment starts, when jobs wait, and when there is nothing to do', async () => {
    const { clock, deployments, lifecycle, load, there, news } = await createLifecycleRig({ withHooks: true })
    await deployments.create({ ...DEMO, workers: 0 })
    await lifecycle.look()
    assert.deepEqual(news(), ['wanted demo 0'])
    assert.equal(deployments.find('demo')?.state, 'provisioning')
    there.set('demo', 1)
    await lifecycle.look()
    assert.equal(deployments.find('demo')?.state, 'ready')
    there.delete('demo')
    load.set('demo', { queued: 4, running: 0 })
    await lifecycle.look()
    assert.deepEqual(news(), ['wanted demo 4'])
    load.clear()
    await lifecycle.look()
    clock.advance(60_000)
    await lifecycle.look()
    assert.deepEqual(news(), ['idle demo'])
  })

  test('the hooks hear of the default pool too, whose workers are never started or stopped here', async () => {
    const { lifecycle, load, there, news } = await createLifecycleRig({ withHooks: true })
    load.set('default', { queued: 1, running: 0 })
    await lifecycle.look()
    assert.deepEqual(news(), ['wanted default 1'])
    there.set('default', 2)
    await lifecycle.look()
    assert.deepEqual(news(), [])
  })

  test('workers of another process make it ready, and nobody is asked for more while they are there', async () => {
    const { lifecycle, deployments, load, elsewhere, news } = await createLifecycleRig({ withHooks: true })
    elsewhere.set('default', 1)
    elsewhere.set('demo', 1)
    load.set('default', { queued: 1, running: 0 })
    await deployments.create({ ...DEMO, workers: 0 })
    await lifecycle.look()
    assert.deepEqual(news(), [])
    assert.equal(deployments.find('demo')?.state, 'ready')
    elsewhere.clear()
    load.set('demo', { queued: 1, running: 0 })
    await deployments.create({ ...DEMO, id: 'other', workers: 0 })
    await lifecycle.look()
    assert.deepEqual(news(), ['wanted default 1', 'wanted demo 1', 'wanted other 0'])
  })
})

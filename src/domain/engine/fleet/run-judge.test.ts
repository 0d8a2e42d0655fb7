import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '../../../../test/support/seeded-random.ts'
import { EngineSuspension } from './engine-suspension.ts'
import { MACHINE_FAULT, type RunFailure, RunJudge } from './run-judge.ts'

const QUARANTINE_MS = 60_000
const NOWHERE = { nodeId: null, classType: null, traceback: null }
const ORDINARY = { ...NOWHERE, code: 'node_execution_error', message: 'shape mismatch' }
const FAULT = { ...NOWHERE, code: MACHINE_FAULT, message: '[Errno 28] No space left on device' }

interface Job {
  readonly id: string
  /** Jobs that are moved go back to their place in the queue. */
  readonly number: number
  readonly lane: string
  losses: number
  /** What its owner would read now. */
  told: RunFailure | null
}

/** Servers, each of one process; processes know only their own runs, and of the others whether one is ready. */
class World {
  now = 0
  readonly servers: { readonly id: string; readonly process: number; readonly suspension: EngineSuspension }[] = []
  readonly judges: RunJudge[] = []
  rests = 0
  #jobs = 0

  constructor(processes: number, each: number) {
    const clock = { now: () => new Date(this.now) }
    for (let process = 0; process < processes; process += 1) {
      for (let index = 0; index < each; index += 1) {
        const suspension = new EngineSuspension({ clock, retryMs: 1000, quarantineMs: QUARANTINE_MS })
        this.servers.push({ id: `${process}/${index}`, process, suspension })
      }
      const find = (id: string) => this.find(id).suspension
      this.judges.push(
        new RunJudge(
          {
            hasOther: (except) => this.servers.some(({ id }) => !except.has(id) && !this.isResting(id)),
            hasTrusted: (except) =>
              this.servers.some(({ id }) => !except.has(id) && !this.isResting(id) && !find(id).brokeLatestRun),
            tryUnproved: () => {
              for (const { suspension } of this.servers) suspension.tryIfUnproved()
            },
            willHaveOther: (except) => this.servers.some(({ id }) => !except.has(id)),
            isResting: (id) => this.isResting(id),
            restsByVerdict: (id) => find(id).restsByVerdict,
            isOnTrial: (id) => find(id).trialReason() !== null,
            rest: (id, reason, jobId) => {
              this.rests += 1
              find(id).quarantine(reason, jobId)
            },
            pause: (id) => find(id).noteFault(),
            doubt: (id, _reason, jobId) => find(id).noteDoubt(jobId),
            acquit: (id, jobId) => find(id).acquit(jobId),
            confirm: (id, jobId) => find(id).confirm(jobId),
            shorten: (id, jobId) => find(id).shorten(jobId),
          },
          clock,
        ),
      )
    }
  }

  find(id: string) {
    const server = this.servers.find((each) => each.id === id)
    assert.ok(server)
    return server
  }

  job(lane = 'a'): Job {
    this.#jobs += 1
    return { id: `job ${this.#jobs}`, number: this.#jobs, lane, losses: 0, told: null }
  }

  isResting(id: string): boolean {
    return this.find(id).suspension.quarantineReason() !== null
  }

  resting(): string[] {
    return this.servers.map(({ id }) => id).filter((id) => this.isResting(id))
  }

  free(): string[] {
    return this.servers.filter(({ suspension }) => suspension.pausedMs() === 0).map(({ id }) => id)
  }

  /** True: the job runs once more. */
  fail(engineId: string, job: Job, failure: RunFailure = FAULT): boolean {
    const run = { engineId, jobId: job.id, lane: job.lane }
    const { isAgain, told } = this.judges[this.find(engineId).process].judge(failure, run, job.losses)
    if (isAgain) job.losses += 1
    job.told = told
    return isAgain
  }

  succeed(engineId: string, job: Job): void {
    this.judges[this.find(engineId).process].succeeded({ engineId, jobId: job.id, lane: job.lane })
    const { suspension } = this.find(engineId)
    suspension.noteGoodRun()
    suspension.noteSuccess()
  }

  cancel(job: Job): void {
    for (const judge of this.judges) judge.forget(job.id)
  }
}

test('with one server per process, a job that fails everywhere rests one of them', () => {
  const world = new World(10, 1)
  const job = world.job()
  let at = 0
  while (world.fail(`${at}/0`, job)) at += 1
  assert.deepEqual([at > 1, world.resting()], [true, ['0/0']])
  // The processes that saw it fail after others do not rest their servers for the next such job.
  world.fail('1/0', world.job())
  assert.deepEqual(world.resting(), ['0/0'])
})

test('within a process, too, and the end of the job takes that rest back', () => {
  const world = new World(1, 4)
  const job = world.job()
  assert.ok(world.fail('0/0', job) && world.fail('0/1', job))
  assert.deepEqual(world.resting(), ['0/0'])
  assert.ok(world.fail('0/2', job))
  assert.equal(world.fail('0/3', job), false)
  assert.deepEqual(world.resting(), [])
})

test('several ill servers are found all the same: by jobs that come to them first, and by success elsewhere', () => {
  const world = new World(3, 1)
  for (const id of ['0/0', '1/0']) world.fail(id, world.job())
  assert.deepEqual(world.resting(), ['0/0', '1/0'])
  const one = new World(1, 4)
  const job = one.job()
  for (const id of ['0/0', '0/1', '0/2']) one.fail(id, job)
  one.succeed('0/3', job)
  assert.deepEqual(one.resting(), ['0/0', '0/1', '0/2'])
})

test('a moved job that finds no other free server than an ill one is not worn out there', () => {
  const world = new World(3, 1)
  const job = world.job()
  world.fail('0/0', job)
  while (world.fail('1/0', job) && !world.isResting('1/0')) world.now += world.find('1/0').suspension.pausedMs()
  assert.ok(world.isResting('1/0'), `moved ${job.losses} times`)
})

/** The first jobs of a server that fails everything: the last of them is moved. */
function failUntilMoved(world: World, engineId: string): Job {
  for (;;) {
    const job = world.job()
    if (world.fail(engineId, job, ORDINARY)) return job
  }
}

test('a job that is to have a second opinion waits for another server for a while, and a pause lies before each look', () => {
  const world = new World(1, 2)
  const job = failUntilMoved(world, '0/0')
  const { suspension } = world.find('0/0')
  // The other server is busy: each time this one is free again, it takes the job once more.
  const comeBack = () => {
    assert.ok(suspension.pausedMs() > 0, 'it takes the job again at once')
    world.now += suspension.pausedMs()
    return world.fail('0/0', job, ORDINARY)
  }
  const startedAt = world.now
  while (world.now < startedAt + 10_000) assert.ok(comeBack(), `failed after ${job.losses} moves`)
  world.succeed('0/1', job)
  assert.deepEqual(world.resting(), ['0/0'])
})

test('where nobody is free to give a second opinion, one job in five costs its server half a minute at most', () => {
  const world = new World(1, 2)
  const { suspension } = world.find('0/0')
  for (let round = 0; round < 3; round += 1) {
    const startedAt = world.now
    const job = failUntilMoved(world, '0/0')
    do world.now += suspension.pausedMs()
    while (world.fail('0/0', job, ORDINARY))
    assert.ok(world.now - startedAt < 35_000, `${world.now - startedAt} ms`)
    for (let next = 0; next < 4; next += 1) assert.equal(world.fail('0/0', world.job(), ORDINARY), false)
  }
})

test('a second opinion from a machine that is ill itself is none: the owner is told what the first server said', () => {
  const world = new World(1, 2)
  const job = failUntilMoved(world, '0/0')
  assert.equal(world.fail('0/1', job, FAULT), false)
  assert.deepEqual(job.told, { ...ORDINARY, code: MACHINE_FAULT }, 'and is not charged for it')
})

test("a service that starts anew counts no fault of a machine as the job's own", () => {
  const before = new World(1, 1)
  const job = before.job()
  assert.ok(before.fail('0/0', job))
  const after = new World(1, 1)
  after.fail('0/0', job)
  assert.equal(job.told?.code, MACHINE_FAULT)
})

test('a doubt that a loss has followed does not end the pause for that', () => {
  const world = new World(1, 2)
  const job = failUntilMoved(world, '0/0')
  world.find('0/0').suspension.noteLoss({ isPast: false })
  world.fail('0/1', job, ORDINARY)
  assert.deepEqual(world.free(), ['0/1'])
})

test('a run that was under way when its server was rested has a second opinion, too', () => {
  const world = new World(1, 2)
  const job = failUntilMoved(world, '0/0')
  const underWay = world.job()
  world.succeed('0/1', job)
  assert.deepEqual(world.resting(), ['0/0'])
  assert.ok(world.fail('0/0', underWay, ORDINARY))
})

test('a second opinion that agrees ends the doubt at once: bad recipes cost no server its time', () => {
  const world = new World(1, 2)
  const job = failUntilMoved(world, '0/0')
  assert.deepEqual(world.free(), ['0/1'])
  assert.equal(world.fail('0/1', job, ORDINARY), false)
  assert.deepEqual(world.free(), ['0/0', '0/1'])
})

test('a job that is canceled while it waits leaves its server on trial, and no rest grows', () => {
  const world = new World(1, 4)
  for (let turn = 0; turn < 20; turn += 1) {
    const job = world.job()
    world.fail(world.free()[0], job)
    assert.ok(world.resting().length <= 1)
    world.cancel(job)
    assert.deepEqual(world.resting(), [])
    world.now += 1000
  }
  world.fail('0/0', world.job())
  assert.ok(world.find('0/0').suspension.pausedMs() <= QUARANTINE_MS)
})

test('an illness that many jobs tell of at once makes one rest', () => {
  const world = new World(1, 3)
  const moved = Array.from({ length: 9 }, () => ({ ...world.job(), losses: 1 }))
  for (const job of moved) world.fail('0/0', job)
  for (const job of moved) world.succeed('0/1', job)
  assert.deepEqual([world.rests, world.find('0/0').suspension.pausedMs()], [1, QUARANTINE_MS])
})

test('a rest that was proved makes the next proved one longer', () => {
  const world = new World(1, 2)
  const restOnce = () => {
    const job = world.job()
    world.fail('0/0', job)
    assert.equal(world.find('0/0').suspension.pausedMs(), QUARANTINE_MS)
    world.succeed('0/1', job)
    const ms = world.find('0/0').suspension.pausedMs()
    world.now += ms
    return ms
  }
  assert.deepEqual([restOnce(), restOnce(), restOnce()], [QUARANTINE_MS, 2 * QUARANTINE_MS, 4 * QUARANTINE_MS])
})

for (const seed of Array.from({ length: 40 }, (_, index) => index + 1)) {
  test(`seed ${seed}: hostile callers rest healthy servers once per job, for the first time only, and never all`, () => {
    const random = seededRandom(seed)
    const world = new World(random.between(1, 6), random.between(1, 4))
    const lanes = ['a', 'b', 'c'].slice(0, random.between(1, 4))
    let waiting: Job[] = []
    let hostile = 0
    for (let step = 0; step < 600; step += 1) {
      world.now += random.between(0, 4000)
      const free = world.free()
      const draw = random.next()
      if (draw < 0.3) {
        hostile += 1
        waiting.push(world.job(random.pick(lanes)))
      } else if (draw < 0.4 && waiting.length > 0) {
        const job = random.pick(waiting)
        waiting = waiting.filter((each) => each !== job)
        world.cancel(job)
      } else if (draw < 0.8 && waiting.length > 0 && free.length > 0) {
        const job = random.pick(waiting)
        if (!world.fail(random.pick(free), job)) waiting = waiting.filter((each) => each !== job)
      } else if (free.length > 0) world.succeed(random.pick(free), world.job(random.pick(lanes)))
      for (const { suspension } of world.servers) assert.ok(suspension.pausedMs() <= QUARANTINE_MS)
      assert.ok(world.resting().length < world.servers.length, 'one of them works')
      assert.ok(world.rests <= 2 * hostile, `${world.rests} rests for ${hostile} jobs`)
    }
    world.now += QUARANTINE_MS
    assert.deepEqual(world.resting(), [], 'the fleet is back')
  })
}

for (const seed of Array.from({ length: 40 }, (_, index) => index + 1)) {
  test(`seed ${seed}: beside up to four ill servers and hostile callers, what one sound server can run is not failed`, () => {
    const random = seededRandom(seed)
    const world = new World(1, random.between(2, 6))
    const [sound] = world.servers.map(({ id }) => id)
    let queue: Job[] = []
    const running = new Map<string, Job>()
    const hostile = new Set<Job>()
    for (let step = 0; step < 1000 || queue.length + running.size > 0; step += 1) {
      assert.ok(step < 20_000, `${queue.length} jobs never end`)
      world.now += random.between(0, 700)
      if (step < 1000 && random.next() < 0.3) {
        const job = world.job()
        if (random.next() < 0.4) hostile.add(job)
        queue.push(job)
      }
      // As offers do it: servers that broke their latest run come last.
      const free = world.free().filter((id) => !running.has(id))
      const trusted = free.filter((id) => !world.find(id).suspension.brokeLatestRun)
      const [job] = queue
      if (job !== undefined && free.length > 0 && random.next() < 0.7) {
        running.set(random.pick(trusted.length > 0 ? trusted : free), job)
        queue.shift()
      } else if (running.size > 0) {
        const [engineId, ended] = random.pick([...running])
        running.delete(engineId)
        if (engineId === sound && !hostile.has(ended)) world.succeed(engineId, ended)
        else if (world.fail(engineId, ended)) queue = [...queue, ended].toSorted((a, b) => a.number - b.number)
        else assert.ok(hostile.has(ended), `it failed after ${ended.losses} moves`)
      }
    }
  })
}

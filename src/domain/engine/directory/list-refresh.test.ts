import assert from 'node:assert/strict'
import { test } from 'node:test'
import { catalogOf } from '../../../../engine/graph/object-info.ts'
import { systemClock } from '../../../../lib/clock.ts'
import { silentLog } from '../../../../lib/log.ts'
import type { DirectoryChanged } from '../../events/event-bus.ts'
import { createListRefresh, type OtherEngine } from './followed-engines.ts'

/** Between two processes: whoever publishes hears it, too. */
function createBus() {
  const listeners = new Set<(notice: DirectoryChanged) => void>()
  return {
    publishDirectory(notice: DirectoryChanged) {
      for (const listener of listeners) listener(notice)
    },
    onDirectory(listener: (notice: DirectoryChanged) => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}

test('an engine of another process is asked by that one, and what it found is known when the question is answered', async () => {
  const bus = createBus()
  let published = catalogOf({})
  let seen = published
  using _driver = createListRefresh({
    fleet: {
      async refreshLists() {
        published = catalogOf({})
      },
    },
    ...{ others: null, bus, clock: systemClock, log: silentLog },
  })
  let own = 0
  using asker = createListRefresh({
    fleet: {
      async refreshLists() {
        own += 1
      },
    },
    others: {
      list: () => [{ status: { state: 'ready' }, catalog: seen } as OtherEngine],
      async refresh() {
        seen = published
      },
    },
    ...{ bus, clock: systemClock, log: silentLog },
  })
  const before = seen
  await Promise.all([asker.refresh(), asker.refresh(), asker.refresh()])
  assert.notEqual(seen, before)
  assert.equal(own, 1, 'its own engines were asked once for all, and not by its own notice')
  await asker.refresh()
  assert.equal(own, 1, 'lists of a moment ago are not asked for again')
})

/** One engine: how it fares, what it runs and ran, and what it prints. */
import { getEngine } from '../../../api/admin.ts'
import { listEngineJobs } from '../../../api/admin-jobs.ts'
import { Loaded } from '../../../components/loaded.tsx'
import { Skeleton } from '../../../components/skeleton.tsx'
import { Words } from '../../../components/words.tsx'
import { hrefOf } from '../../../routes.ts'
import { useResource } from '../../../state/resource.ts'
import { OwnedJobs } from '../jobs/owned-jobs.tsx'
import { useServiceEvents } from '../use-service-events.ts'
import { EngineLogView } from './engine-log-view.tsx'
import { EngineCard, useEngineDeeds } from './engines-page.tsx'

export function EnginePage({ id = '' }: Readonly<Record<string, string>>) {
  const resource = useResource(`operator engine ${id}`, async (abort) => {
    const [engine, { jobs }] = await Promise.all([getEngine(id, abort), listEngineJobs(id, abort)])
    return { engine, jobs }
  })
  useServiceEvents(resource)
  const act = useEngineDeeds(resource.reload)
  return (
    <section class="page">
      <a class="dim back" href={hrefOf('/operator/engines')}>
        ← Engines
      </a>
      <h1>
        Engine <Words text={id} />
      </h1>
      <Loaded resource={resource} skeleton={<Skeleton rows={6} />}>
        {({ engine, jobs }) => (
          <>
            <EngineCard engine={engine} onDeed={(deed) => void act(engine, deed)} />
            <h2>Jobs</h2>
            {jobs.length === 0 ? (
              <p class="dim">It has run nothing that is still kept.</p>
            ) : (
              <OwnedJobs label="Jobs of this engine" jobs={jobs} hidesEngine />
            )}
            <p>
              <a href={hrefOf(`/operator/jobs?engine=${encodeURIComponent(id)}`)}>All jobs of this engine</a>
            </p>
          </>
        )}
      </Loaded>
      <h2>Log</h2>
      <EngineLogView id={id} />
    </section>
  )
}

import { zipHref } from '../../api/jobs.ts'
import { listOutputs } from '../../api/outputs.ts'
import { BASE } from '../../base.ts'
import { Icon } from '../../components/icon.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Thumb } from '../../components/media/thumb.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { hrefOf } from '../../routes.ts'
import { counts } from '../../state/live/live.ts'
import { useReloadOn, useResource } from '../../state/resource.ts'
import { toMarkedText } from '../../text/marks.ts'

const SHOWN = 12

/** The newest outputs; asked again when a job has succeeded. */
export function NewestResults() {
  const resource = useResource('newest results', (signal) =>
    listOutputs(new URLSearchParams({ limit: String(SHOWN) }), signal),
  )
  useReloadOn(counts.value?.succeeded, resource.reload)
  return (
    <section aria-labelledby="home-results">
      <div class="section-head">
        <h2 id="home-results">Newest results</h2>
        <a href={hrefOf('/gallery')}>Gallery →</a>
      </div>
      <Loaded resource={resource} skeleton={<Skeleton rows={6} kind="tile" />}>
        {({ outputs }) =>
          outputs.length === 0 ? (
            <p class="dim">What jobs make is shown here.</p>
          ) : (
            <ul class="tiles">
              {outputs.map(({ asset_id, job_id, job_title, name, content_type }) => (
                <li key={asset_id}>
                  <a href={hrefOf(`/jobs/${job_id}#result`)} title={toMarkedText(job_title || name)}>
                    <Thumb
                      assetId={asset_id}
                      type={content_type}
                      alt={toMarkedText(`${name} of ${job_title}`)}
                      width={256}
                    />
                  </a>
                  <span class="tile-deeds">
                    <a
                      class="icon-button"
                      href={hrefOf(`/run?from=${job_id}`)}
                      aria-label={toMarkedText(`Run ${job_title || name} again`)}
                      title="Run again"
                    >
                      <Icon name="again" />
                    </a>
                    <a
                      class="icon-button"
                      href={zipHref(BASE, [job_id])}
                      download
                      aria-label={toMarkedText(`Download all results of ${job_title || name}`)}
                      title="Download all results of this job"
                    >
                      <Icon name="down" />
                    </a>
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </section>
  )
}

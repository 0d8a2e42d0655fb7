/** The models that can be called, by provider. */
import { listModels, type ModelRow } from '../../api/models.ts'
import { EmptyState } from '../../components/empty-state.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Skeleton } from '../../components/skeleton.tsx'
import { Words } from '../../components/words.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { plural } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'
import { ModelTabs } from './model-tabs.tsx'

export function ModelsPage() {
  const resource = useResource('models', listModels)
  const wanted = query.value.get('q') ?? ''
  return (
    <section class="page models">
      <h1>Models</h1>
      <ModelTabs here="models" />
      <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
        {(models) => {
          const words = wanted.toLowerCase().split(/\s+/)
          const found = models.filter(({ id, title }) => {
            const text = `${id} ${title}`.toLowerCase()
            return words.every((word) => text.includes(word))
          })
          return (
            <>
              <div class="graph-bar">
                <input
                  type="search"
                  aria-label="Find a model"
                  placeholder="Find a model"
                  value={wanted}
                  onInput={(event) => setQuery({ q: event.currentTarget.value }, { replace: true })}
                />
                <span class="dim">{plural(found.length, 'model')}</span>
              </div>
              {found.length === 0 && (
                <EmptyState title={wanted === '' ? 'No models' : `No model is called “${toMarkedText(wanted)}”`} />
              )}
              {[...byProvider(found)].map(([provider, rows]) => (
                <section key={provider} aria-label={toMarkedText(provider)}>
                  <h2>
                    <Words text={provider} />
                  </h2>
                  <ul class="model-list">
                    {rows.map((row) => (
                      <li key={row.id}>
                        <ModelCard row={row} />
                      </li>
                    ))}
                  </ul>
                </section>
              ))}
            </>
          )
        }}
      </Loaded>
    </section>
  )
}

function ModelCard({ row }: { readonly row: ModelRow }) {
  const { id, provider, description, price, is_runnable: isRunnable, why_not: whyNot } = row
  const name = id.startsWith(`${provider}/`) ? id.slice(provider.length + 1) : id
  return (
    <a class="card model-card" href={hrefOf(`/models/${id}`)}>
      <strong>
        <Words text={name} />
      </strong>
      {description !== null && (
        <span class="dim model-about">
          <Words text={description} />
        </span>
      )}
      <span class="dim model-about">
        {isRunnable ? <Words text={price ?? 'price not known before'} /> : <Words text={whyNot ?? 'not offered'} />}
      </span>
    </a>
  )
}

function byProvider(models: readonly ModelRow[]): ReadonlyMap<string, readonly ModelRow[]> {
  const groups = new Map<string, ModelRow[]>()
  for (const model of models) groups.set(model.provider, [...(groups.get(model.provider) ?? []), model])
  return groups
}

/** The models that can be called, by provider. */
import { listModels, type ModelRow } from '../../api/models.ts'
import { EmptyState, Loaded, Skeleton } from '../../components/state.tsx'
import { PageTabs } from '../../components/tabs/tabs.tsx'
import { Words } from '../../components/text.tsx'
import { hrefOf, query, setQuery } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'
import { plural } from '../../text/format.ts'
import { toMarkedText } from '../../text/marks.ts'

const WAYS = { in: 'takes', out: 'gives' } as const
type Way = keyof typeof WAYS

export function ModelsPage() {
  const resource = useResource('models', listModels)
  return (
    <section class="page models">
      <h1>Models</h1>
      <ModelTabs here="models" />
      <Loaded resource={resource} skeleton={<Skeleton rows={8} />}>
        {(models) => <Catalogue models={models} />}
      </Loaded>
    </section>
  )
}

function Catalogue({ models }: { readonly models: readonly ModelRow[] }) {
  const wanted = query.value.get('q') ?? ''
  const words = wanted.toLowerCase().split(/\s+/)
  const [takes, gives] = [query.value.get('in'), query.value.get('out')]
  const found = models.filter((model) => {
    const text = `${model.id} ${model.title}`.toLowerCase()
    const isLike = (takes === null || model.in.includes(takes)) && (gives === null || model.out.includes(gives))
    return isLike && words.every((word) => text.includes(word))
  })
  return (
    <>
      <div class="filter-bar">
        <input
          type="search"
          class="find-field"
          aria-label="Find a model"
          placeholder="Find a model"
          value={wanted}
          onInput={(event) => setQuery({ q: event.currentTarget.value }, { replace: true })}
        />
        <MediaChoice way="in" models={models} />
        <MediaChoice way="out" models={models} />
        <span class="dim">{plural(found.length, 'model')}</span>
      </div>
      {found.length === 0 && (
        <EmptyState title={models.length === 0 ? 'No models' : 'No model fits'}>
          {models.length > 0 && (
            <a class="button" href={hrefOf('/models')}>
              Show all
            </a>
          )}
        </EmptyState>
      )}
      {[...byProvider(found)].map(([provider, rows]) => (
        <section key={provider} class="provider" aria-label={toMarkedText(provider)}>
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
}

/** What a model takes, or gives: of the words that the models themselves have. */
function MediaChoice({ way, models }: { readonly way: Way; readonly models: readonly ModelRow[] }) {
  const known = [...new Set(models.flatMap((model) => model[way]))].toSorted()
  return (
    <label class="media-choice">
      <span class="dim">{WAYS[way]}</span>
      <select value={query.value.get(way) ?? ''} onChange={(event) => setQuery({ [way]: event.currentTarget.value })}>
        <option value="">anything</option>
        {known.map((word) => (
          <option key={word} value={word}>
            {toMarkedText(word)}
          </option>
        ))}
      </select>
    </label>
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
        {row.price_confirmed === false && ' (not confirmed)'}
      </span>
    </a>
  )
}

function byProvider(models: readonly ModelRow[]): ReadonlyMap<string, readonly ModelRow[]> {
  const groups = new Map<string, ModelRow[]>()
  for (const model of models) groups.set(model.provider, [...(groups.get(model.provider) ?? []), model])
  return groups
}

const PLACES = { models: ['/models', 'Models'], calls: ['/models/calls', 'Calls'] } as const

export function ModelTabs({ here }: { readonly here: keyof typeof PLACES }) {
  return <PageTabs label="Models and calls" places={Object.values(PLACES)} here={PLACES[here][0]} />
}

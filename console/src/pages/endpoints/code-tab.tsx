/** How programs call the endpoint, as its OpenAPI document tells it. */
import { type CodeSample, type Endpoint, getSamples } from '../../api/endpoints.ts'
import { Loaded, Skeleton } from '../../components/state.tsx'
import { CopyButton } from '../../components/text.tsx'
import { query } from '../../routes.ts'
import { useResource } from '../../state/resource.ts'

export function CodeTab({ endpoint }: { readonly endpoint: Endpoint }) {
  const { name, urls } = endpoint
  const version = query.value.get('version')
  const samples = useResource(`samples ${name} ${version}`, (signal) => getSamples(name, version, signal))
  return (
    <>
      <p class="long-address">
        As OpenAPI: <a href={urls.openapi}>{urls.openapi}</a>{' '}
        <CopyButton text={urls.openapi} label="Copy the address of the OpenAPI document" />, as a page:{' '}
        <a href={urls.docs}>{urls.docs}</a>
      </p>
      <Loaded resource={samples} skeleton={<Skeleton rows={6} />}>
        {(found) => found.map((sample) => <Sample key={sample.label} {...sample} />)}
      </Loaded>
    </>
  )
}

function Sample({ label, source }: CodeSample) {
  return (
    <section aria-label={label}>
      <div class="section-head">
        <h2>{label}</h2>
        <CopyButton text={source} label={`Copy for ${label}`} word="Copy" />
      </div>
      <pre class="code-sample" tabIndex={0}>
        {source}
      </pre>
    </section>
  )
}

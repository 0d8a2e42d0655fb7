/** Links in one line of which one is where we are: pages that belong together, or the values of a filter. */
import { hrefOf } from '../../routes.ts'

type Place = readonly [to: string, label: string]

interface SegmentsProps {
  readonly label: string
  readonly places: readonly Place[]
  readonly here: string
}

export function PageTabs(props: SegmentsProps) {
  return <Links {...props} kind="page" />
}

/** The values of one filter. */
export function FilterLinks(props: SegmentsProps) {
  return <Links {...props} kind="true" />
}

function Links({ label, places, here, kind }: SegmentsProps & { readonly kind: 'page' | 'true' }) {
  return (
    <nav class={`segments ${kind === 'page' ? 'page-tabs' : ''}`} aria-label={label}>
      {places.map(([to, word]) => (
        <a key={to} href={hrefOf(to)} aria-current={to === here ? kind : undefined}>
          {word}
        </a>
      ))}
    </nav>
  )
}

/** Small drawings beside words; never without a word, so they say nothing to a screen reader. Paths of a 16 by 16 grid. */
const PATHS = {
  home: 'M2 8 8 2.5 14 8M4 7v6.5h3V10h2v3.5h3V7',
  list: 'M5.5 4H14M5.5 8H14M5.5 12H14M2 4h.5M2 8h.5M2 12h.5',
  play: 'M4.5 2.5v11l9-5.5z',
  picture: 'M2 3h12v10H2zM2 11l3.5-3.5L8 10l2.5-2.5L14 11M10.5 5.5h.01',
  spark: 'M8 1.5 9.6 6.4 14.5 8 9.6 9.6 8 14.5 6.4 9.6 1.5 8 6.4 6.4z',
  file: 'M4 1.5h5l3 3v10H4zM9 1.5v3h3',
  person: 'M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14.5c.5-3 2.5-4.5 5.5-4.5s5 1.5 5.5 4.5',
  gauge: 'M2 12a6 6 0 1 1 12 0M8 12l3-4',
  gear: 'M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4',
  search: 'M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM10.6 10.6 14 14',
  check: 'M2.5 8.5 6 12l7.5-8',
  cross: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  clock: 'M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM8 4v4l2.5 2',
  stop: 'M3.5 3.5h9v9h-9z',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  down: 'M8 2v9M4 7.5 8 11.5l4-4M2.5 14h11',
  up: 'M8 14V5M4 8.5 8 4.5l4 4M2.5 2h11',
  again: 'M13.5 8A5.5 5.5 0 1 1 11.8 4M13.5 2v3h-3',
  warn: 'M8 2 14.5 13.5h-13zM8 6.5v3M8 11.5h.01',
  sound: 'M2.5 6v4h3l4 3.5v-11L5.5 6zM12 5.5c1.2 1.5 1.2 3.5 0 5',
  pause: 'M5 3v10M11 3v10',
  link: 'M6.5 9.5a3 3 0 0 0 4.2 0l2.4-2.4a3 3 0 0 0-4.2-4.2L8 3.8M9.5 6.5a3 3 0 0 0-4.2 0L2.9 8.9a3 3 0 0 0 4.2 4.2L8 12.2',
  plus: 'M8 3v10M3 8h10',
  left: 'M10 3 5 8l5 5',
  right: 'M6 3l5 5-5 5',
  endpoint: 'M2 8h4M10 8h4M6 5.5h4v5H6zM12 6l2 2-2 2',
  stack: 'M2 5l6-3 6 3-6 3zM2 8l6 3 6-3M2 11l6 3 6-3',
  dots: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}

// Shows /node.json, which it gets once a second. All names are foreign: they become text, never markup.
'use strict';

const $ = id => document.getElementById(id);
let shown = null;   // the document on the page
let tag = '';       // its ETag
let token = '';     // kept only here
let answered = null; // the time of qrmd's latest answer

/** An element with attributes and children, which are text or elements. */
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== false) element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.filter(child => child !== '' && child !== null));
  return element;
}

/** "0-2,5" as numbers. */
function numbers(list) {
  const all = [];
  for (const part of list.split(',').filter(Boolean)) {
    const [first, last = first] = part.split('-').map(Number);
    for (let id = first; id <= last; ++id) all.push(id);
  }
  return all;
}

function bytes(count) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; count >= 1024 && unit < units.length - 1; ++unit) count /= 1024;
  return `${+count.toFixed(1)} ${units[unit]}`;
}

const amount = (resource, value) => /^(memory|hugepages-)/.test(resource) ? bytes(value) : String(+value.toFixed(3));
const clock = when => new Date(when).toLocaleTimeString();
const nameOf = c => `${c.namespace}/${c.pod}/${c.container}`;

// Each container with exclusive CPUs has a letter and a colour, and keeps both while it exists.
const numbersOf = new Map();
const letters = owner => (n => (n >= 26 ? String.fromCharCode(64 + Math.floor(n / 26)) : '') + String.fromCharCode(65 + n % 26))(
  numbersOf.get(owner.id) % 702);
function numberOwners(owners) {
  const ids = new Set(owners.map(owner => owner.id));
  for (const id of numbersOf.keys()) if (!ids.has(id)) numbersOf.delete(id);
  const taken = new Set(numbersOf.values());
  let next = 0;
  for (const id of ids) {
    if (numbersOf.has(id)) continue;
    while (taken.has(next)) ++next;
    numbersOf.set(id, next++);
  }
}

/** Sets a colour. Consecutive numbers get clearly different colours. */
function coloured(element, property, number) {
  element.style.setProperty(property, Math.round(number * 137.5 + 330) % 360);
  return element;
}

function index(node) {
  const owners = node.containers.filter(c => c.own);
  numberOwners(owners);
  const by = {owner: new Map(), shared: new Map(), pool: new Map(), offline: new Set(numbers(node.offline))};
  for (const c of owners) for (const cpu of numbers(c.cpus)) by.owner.set(cpu, c);
  for (const n of node.nodes) for (const cpu of numbers(n.shared)) by.shared.set(cpu, []);
  for (const c of node.containers.filter(container => !container.own)) {
    for (const cpu of numbers(c.cpus)) if (by.shared.has(cpu)) by.shared.get(cpu).push(c);
  }
  node.pools.forEach((pool, i) => { pool.number = i + 2; });
  for (const pool of node.pools) for (const cpu of numbers(pool.cpus)) by.pool.set(cpu, pool);
  return by;
}

function cpuButton(cpu, core, node, by) {
  const owner = by.owner.get(cpu), sharers = by.shared.get(cpu), pool = by.pool.get(cpu);
  const who = owner ? `${nameOf(owner)}, exclusive` : !sharers ? 'free' :
    `shared by ${sharers.length === 1 ? nameOf(sharers[0]) : `${sharers.length} containers`}`;
  const words = `CPU ${cpu}, core ${core}, node ${node}: ${who}` + (pool ? `; pool ${pool.name}` : '') +
    (by.offline.has(cpu) ? '; offline' : '');
  const button = make('button', {
    type: 'button', title: words, 'aria-label': words, 'data-key': `cpu-${cpu}`, 'data-cpu': cpu,
    class: 'cpu' + (owner ? ' owner' : sharers ? ' shared' : '') + (pool ? ' pool' : '') +
      (by.offline.has(cpu) ? ' offline' : ''),
  }, make('b', {}, String(cpu)), make('span', {}, owner ? letters(owner) : sharers ? '•' : ''));
  if (owner) coloured(button, '--hue', numbersOf.get(owner.id));
  if (pool) coloured(button, '--pool', pool.number);
  button.addEventListener('click', () => owner ? showWhy(owner) : showText(`CPU ${cpu}`, words,
    (sharers || []).map(nameOf)));
  return button;
}

function nodeCard(node, by) {
  const caches = node.caches.map(cores => make('div', {class: 'cache', title: 'shares an L3 cache'}, ...cores.map(cpus =>
    make('div', {class: 'core'}, ...cpus.map(cpu => cpuButton(cpu, cpus[0], node.id, by))))));
  const memory = `${bytes(node.memory_given)} of ${bytes(node.memory)} memory allocated`;
  return make('div', {class: 'node', 'data-node': node.id},
    make('h3', {}, `Node ${node.id}`),
    make('p', {class: 'quiet'}, make('meter', {min: 0, max: Math.max(node.memory, 1), value: node.memory_given, 'aria-label': memory}),
      ` ${memory}`),
    make('div', {class: 'caches'}, ...caches),
    make('p', {class: 'quiet'}, `exclusive ${node.own || 'none'} · shared ${node.shared || 'none'} · free ${node.free || 'none'}`));
}

function drawMap(node, by) {
  const packages = new Map();
  for (const n of node.nodes) packages.set(n.package, [...(packages.get(n.package) || []), nodeCard(n, by)]);
  $('map').replaceChildren(...[...packages].map(([id, cards]) =>
    make('div', {class: 'package'}, make('h3', {}, `Package ${id}`), ...cards)));
  $('legend').replaceChildren(make('span', {class: 'mark'}, 'A'), ' in a colour: exclusive to one container; ',
    make('span', {class: 'mark shared'}, '•'), ' shared; ', make('span', {class: 'mark'}, '\u00a0'), ' free',
    ...node.pools.flatMap(pool => ['; ', coloured(make('span', {class: 'stripe'}), '--pool', pool.number), ` pool ${pool.name}`]),
    '. Select a CPU to see which containers have it and why.');
}

function mark(container) {
  if (!container.own) return container.cpus ? make('span', {class: 'mark shared'}, '•') : '';
  return coloured(make('span', {class: 'mark owner'}, letters(container)), '--hue', numbersOf.get(container.id));
}

function drawContainers(node) {
  const head = make('tr', {}, ...['', 'Container', 'Role', 'CPUs', 'Memory nodes', 'Other allocations'].map(text => make('th', {scope: 'col'}, text)));
  const rows = node.containers.map(c => {
    const link = make('button', {type: 'button', class: 'link', 'data-key': `why-${c.id}`}, nameOf(c));
    link.addEventListener('click', () => showWhy(c));
    const holds = Object.entries(c.holds).map(([resource, value]) => `${resource} ${amount(resource, value)}`).join(', ');
    const lacks = c.without ? make('span', {class: 'chip bad'}, `without ${c.without.join(', ')}`) : '';
    const state = c.state ? make('span', {class: `chip ${c.state === 'skipped' ? 'warn' : 'bad'}`, title: c.why}, c.state) : '';
    return make('tr', {'data-id': c.id}, make('td', {}, mark(c)), make('td', {}, link), make('td', {}, c.role || '–'),
      make('td', {class: 'number'}, c.cpus ? c.cpus + (c.own ? ' (exclusive)' : '') : '–'),
      make('td', {class: 'number'}, c.mems || '–'),
      make('td', {}, holds || (lacks || state ? '' : '–'), lacks, state, c.why ? make('div', {class: 'quiet'}, c.why) : ''));
  });
  $('containers').replaceChildren(make('thead', {}, head), make('tbody', {}, ...rows));
  $('left-out').textContent = node.containers_left_out ? `and ${node.containers_left_out} more: qrmctl pods lists them` :
    node.containers.length ? '' : 'No container on this node has an allocation.';
}

function drawPlugins(node) {
  $('plugins').replaceChildren(...node.plugins.map(plugin => {
    const kind = {live: 'good', suspect: 'warn', away: 'bad'}[plugin.state];
    return make('li', {class: kind === 'good' ? '' : kind, 'data-plugin': plugin.resource},
      make('span', {class: `chip ${kind}`}, plugin.state), ' ', make('strong', {}, plugin.resource),
      ` (${plugin.registered_by})`, plugin.problem ? make('div', {}, plugin.problem) : '');
  }));
}

function drawPools(node) {
  $('pools').replaceChildren(...node.pools.map(pool => make('li', {'data-pool': pool.name, class: pool.configured === undefined ? '' : 'warn'},
    coloured(make('span', {class: 'stripe'}), '--pool', pool.number), ' ', make('strong', {}, pool.name),
    ` (${pool.resource}): CPUs ${pool.cpus || 'none'}`,
    pool.configured === undefined ? '' : make('div', {}, `configured: ${pool.configured || 'none'}`))));
  if (!node.pools.length) $('pools').replaceChildren(make('li', {}, 'No pool is configured.'));
}

function drawDecisions(node) {
  $('decisions').replaceChildren(...node.decisions.map((decision, i) => {
    const kind = {admitted: 'good', rejected: 'bad'}[decision.result] || 'warn';
    const link = make('button', {type: 'button', class: 'link', 'data-key': `decision-${i}`}, decision.container);
    link.addEventListener('click', () => showWhy({id: decision.id}, decision.container));
    return make('li', {class: kind === 'bad' ? 'bad' : ''},
      make('time', {datetime: new Date(decision.time).toISOString()}, clock(decision.time)),
      make('span', {class: `chip ${kind}`}, decision.result), ' ', link, make('div', {}, decision.message));
  }));
  if (!node.decisions.length) $('decisions').replaceChildren(make('li', {}, 'No decision yet.'));
}

function drawHead(node) {
  document.title = `${node.node} – qrm`;
  $('node').textContent = node.node;
  $('facts').textContent = `qrmd ${node.version} · ${node.runtime.trim() || 'no runtime yet'} · mode ${node.mode} · policy ${node.policy}`;
  const kind = !node.ready ? 'bad' : node.degraded.length ? 'warn' : 'good';
  $('state').textContent = !node.ready ? 'not ready' : node.degraded.length ? 'ready, degraded' : 'ready';
  $('state').className = `chip ${kind}`;
  $('reasons').replaceChildren(...node.not_ready.map(text => make('p', {class: 'bad'}, text)),
    ...[...node.degraded, ...node.warnings].map(text => make('p', {class: 'warn'}, text)));
}

/** Draws the whole page, and keeps the keyboard's focus. */
function draw(node) {
  const key = document.activeElement && document.activeElement.dataset.key;
  const by = index(node);
  drawHead(node);
  drawMap(node, by);
  drawContainers(node);
  drawPlugins(node);
  drawPools(node);
  drawDecisions(node);
  $('main').hidden = false;
  const again = key && [...document.querySelectorAll('[data-key]')].find(element => element.dataset.key === key);
  if (again) again.focus({preventScroll: true});
}

function openDetail(title, ...content) {
  $('detail-title').textContent = title;
  $('detail-body').replaceChildren(...content);
  if (!$('detail').open) $('detail').showModal();
}

function showText(title, text, names) {
  openDetail(title, make('p', {}, text), make('ul', {}, ...names.slice(0, 50).map(name => make('li', {}, name))));
}

function terms(pairs) {
  return make('dl', {}, ...pairs.filter(([, text]) => text).flatMap(([name, text]) => [make('dt', {}, name), make('dd', {}, text)]));
}

function part(title, entries) {
  return entries.length ? [make('h3', {}, title), terms(entries)] : [];
}

async function showWhy(container, title) {
  const name = title || nameOf(container);
  const response = await ask(`why/${container.id}`).catch(() => null);
  if (!response || !response.ok) {
    openDetail(name, make('p', {}, response ? 'qrmd has no decision about it.' : 'qrmd does not answer.'));
    return;
  }
  const why = await response.json();
  const policy = why.policy ? ` by policy ${why.policy}` : '';
  openDetail(why.container,
    terms([['Decided', `${why.result} at ${new Date(why.time).toLocaleString()} (${why.moment})`], ['Why', why.message]]),
    ...part('Requested', why.asked), ...part('Nodes that could serve it', why.hints),
    ...part(`Merged${policy}`, why.merged), make('ul', {}, ...why.reasons.map(text => make('li', {}, text))),
    ...part('Allocated', why.given));
}

function ask(path, headers = {}) {
  if (token) headers.Authorization = `Bearer ${token}`;
  return fetch(path, {headers, cache: 'no-store', signal: AbortSignal.timeout(5000)});
}

async function refused(response) {
  $('denied').textContent = token ? await response.text() : '';
  $('ask').hidden = false;
  $('main').hidden = true;
  shown = null;
  tag = token = '';
}

function lost(why) {
  $('lost').textContent = `qrmd does not answer (since ${answered ? clock(answered) : 'this page was opened'})` +
    `${why}. ${shown ? 'The data below may be outdated.' : ''}`;
  $('lost').hidden = false;
  $('state').textContent = 'unknown';
  $('state').className = 'chip bad';
}

async function follow() {
  try {
    const response = await ask('node.json', tag ? {'If-None-Match': tag} : {});
    if (response.status === 401 || response.status === 403) {
      await refused(response);
      return;
    }
    if (response.status !== 304 && !response.ok) throw new Error(await response.text());
    if (response.status !== 304) {
      shown = await response.json();
      tag = response.headers.get('ETag');
      draw(shown);
    } else if (!$('lost').hidden) {
      drawHead(shown);
    }
    answered = Date.now();
    $('ask').hidden = $('lost').hidden = true;
    $('updated').textContent = `as of ${clock(answered)}`;
  } catch (error) {
    lost(error instanceof TypeError || error.name === 'TimeoutError' ? '' : `: ${error.message}`);
  }
  setTimeout(follow, document.hidden ? 5000 : 1000);
}

$('ask').addEventListener('submit', event => {
  event.preventDefault();
  token = $('token').value.trim();
  $('token').value = '';
  follow();
});
$('close').addEventListener('click', () => $('detail').close());
follow();

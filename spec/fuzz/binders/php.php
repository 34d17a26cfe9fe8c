<?php
// Reads texts from standard input, one hex line each, and prints all values of "to" in PHP, as JSON.
error_reporting(0);
while (($line = fgets(STDIN)) !== false) {
  [$kind, $hex] = explode(' ', trim($line) . ' ');
  $text = hex2bin($hex);
  if ($kind === 'json') {
    $all = json_decode($text, true);
  } else {
    parse_str($text, $all);
  }
  $value = is_array($all) && array_key_exists('to', $all) ? $all['to'] : null;
  $found = [];
  if (is_array($value)) {
    array_walk_recursive($value, function ($one) use (&$found) { $found[] = bin2hex((string) $one); });
  } elseif ($value !== null) {
    $found[] = bin2hex((string) $value);
  }
  echo json_encode(['php' => $found]), "\n";
}
